// SPDX-License-Identifier: Apache-2.0
//! Where libweft comes from: WEFT_LIB_DIR (a directory with libweft.a), pkg-config (feature), or its C source.
use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=WEFT_LIB_DIR");
    println!("cargo::rerun-if-env-changed=WEFT_SOURCE_DIR");
    let source = source_dir();
    println!("cargo::rerun-if-changed={}", source.join("include").display());
    if let Some(dir) = env::var_os("WEFT_LIB_DIR") {
        println!("cargo::rustc-link-search=native={}", Path::new(&dir).display());
        println!("cargo::rerun-if-changed={}", Path::new(&dir).join("libweft.a").display());
        println!("cargo::rustc-link-lib=static=weft");
        link_codecs();
    } else if !installed() {
        compile(&source);
    }
    println!("cargo::metadata=include={}", source.join("include").display());
}

/// The tree with `include` and `src`: this repository, or what a published crate carries.
fn source_dir() -> PathBuf {
    if let Some(dir) = env::var_os("WEFT_SOURCE_DIR") {
        return dir.into();
    }
    Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("c")
}

#[cfg(feature = "pkg-config")]
fn installed() -> bool {
    if let Err(why) = pkg_config::Config::new().atleast_version("0.1").probe("weft") {
        panic!("libweft is not installed, or pkg-config does not find it: {why}");
    }
    true
}

#[cfg(not(feature = "pkg-config"))]
fn installed() -> bool {
    false
}

fn compile(source: &Path) {
    println!("cargo::rerun-if-changed={}", source.join("src").display());
    cc::Build::new()
        .file(source.join("src/weft.c"))
        .include(source.join("include"))
        .include(source.join("src"))
        .opt_level(2) // it is on hot paths of programs that are not optimized, too
        .debug(false)
        .warnings(false)
        .flag("-pthread")
        .flag("-fvisibility=hidden")
        .flag("-ftls-model=initial-exec")
        .define("_GNU_SOURCE", "1")
        .compile("weft");
    link_codecs();
}

/// Debian: libzstd-dev, libdeflate-dev; xxhash.h of libxxhash-dev is a header only.
fn link_codecs() {
    println!("cargo::rustc-link-lib=zstd");
    println!("cargo::rustc-link-lib=deflate");
}
