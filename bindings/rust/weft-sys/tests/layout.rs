// SPDX-License-Identifier: Apache-2.0
//! The structs here are those of the C headers: a C program prints sizes and offsets, and they have to be the same.
use std::collections::HashMap;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

macro_rules! structs {
    ($($name:ident { $($field:ident),* $(,)? })*) => {
        fn ours() -> Vec<(String, usize)> {
            vec![$(
                (stringify!($name).to_string(), size_of::<weft_sys::$name>()),
                $((format!("{}.{}", stringify!($name), stringify!($field)), offset_of!(weft_sys::$name, $field)),)*
            )*]
        }

        fn program() -> String {
            let mut text = String::from("#include <stdio.h>\n#include <weft/weft.h>\nint main(void) {\n");
            $(
                text += &format!("printf(\"{0} %zu\\n\", sizeof(struct {0}));\n", stringify!($name));
                $(text += &format!(
                    "printf(\"{0}.{1} %zu\\n\", offsetof(struct {0}, {1}));\n",
                    stringify!($name), stringify!($field)
                );)*
            )*
            text + "return 0; }\n"
        }
    };
}

structs! {
    weft_error { code, msg }
    weft_field { name, unit }
    weft_runtime_opts { size, name, worker, queue, data }
    weft_context { trace_hi, trace_lo, span, root, endpoint, labels, flags, reserved }
    weft_recorder_stats {
        size, state, threads, events, lost, bytes, segments, drains, pauses, collector_ns, rings, ring_bytes,
        recovered, samples, samples_lost, uncovered, dumps, cost_ns, program_ns, sample_hz, limited,
    }
    weft_report { size, path, name, bytes, fd, tries, retry_after_ns }
    weft_health { size, ok, state, targets, failing, sent, bytes, retries, refused, waiting, sent_real_ns, why }
    weft_recorder_opts { size, dir, name, labels, sample_hz, sample_signal, budget_ppm, trigger_forward_ns }
}

#[test]
fn structs_are_laid_out_as_in_c() {
    let dir = std::env::temp_dir().join(format!("weft-sys-layout-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("layout.c"), program()).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/include");
    let done = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
        .args(["-o", "layout", "layout.c", "-I"])
        .arg(include)
        .args(["-DWEFT_NO_INLINE"])
        .current_dir(&dir)
        .status()
        .expect("a C compiler");
    assert!(done.success());
    let printed = Command::new(dir.join("layout")).output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    let theirs: HashMap<&str, usize> =
        printed.lines().filter_map(|line| line.split_once(' ')).map(|(key, n)| (key, n.parse().unwrap())).collect();
    for (key, n) in ours() {
        assert_eq!(theirs.get(key.as_str()), Some(&n), "{key}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
