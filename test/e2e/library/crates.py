# SPDX-License-Identifier: Apache-2.0
"""What tests of the Rust crates share: cargo, which fetches crates as Cargo.lock has them."""
import os
import re
import shutil
import subprocess
import sys

BUILD, SOURCE = os.environ["WEFT_BUILD"], os.environ["WEFT_SOURCE"]
RUST = os.path.join(SOURCE, "bindings", "rust")
UNSTABLE = "--cfg tokio_unstable"
LEAST = (1, 85)


def skip(why):
    print("reason: " + why)
    sys.exit(77)


def need_cargo():
    if not shutil.which("cargo"):
        skip("no cargo here; tools/bootstrap check installs cargo-web")
    said = subprocess.run(["cargo", "--version"], stdout=subprocess.PIPE, text=True, cwd=RUST).stdout
    found = re.match(r"cargo (\d+)\.(\d+)", said)
    if not found or tuple(map(int, found.groups())) < LEAST:
        skip("the Rust crates need cargo %d.%d, and this is %s" % (*LEAST, said.strip() or "none"))


def cargo(flags, *args):
    """Builds into build/PRESET/rust, with the library of the preset."""
    env = dict(os.environ, CARGO_TARGET_DIR=os.path.join(BUILD, "rust"), WEFT_LIB_DIR=BUILD, RUSTFLAGS=flags)
    done = subprocess.run(["cargo", args[0], "--locked", *args[1:]], cwd=RUST, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode and re.search(r"(failed to download|Could not resolve|could not connect|network)", done.stdout):
        skip("cargo cannot fetch crates here: " + done.stdout.strip().splitlines()[-1])
    if done.returncode:
        sys.exit("cargo %s ended with %d:\n%s" % (" ".join(args), done.returncode, done.stdout[-4000:]))


def example(name):
    return os.path.join(BUILD, "rust", "debug", "examples", name)
