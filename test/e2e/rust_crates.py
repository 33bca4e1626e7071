#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# presets: dev
# timeout: 900
"""Unit tests and examples in the documentation of the Rust crates, with --cfg tokio_unstable and without."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["WEFT_SOURCE"], "test", "e2e", "library"))
from crates import UNSTABLE, cargo, need_cargo

need_cargo()
for flags in (UNSTABLE, ""):
    os.environ["RUSTDOCFLAGS"] = flags
    for what in (["--lib", "--tests"], ["--doc"]):  # not examples, which other tests build as they want them
        cargo(flags, "test", "--workspace", *what, "--features", "weft-tokio/tracing,weft-tokio/opentelemetry")
