#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 200 kills at random moments, then some with the rings gone and the file cut. WEFT_SEED repeats a run, WEFT_KILLS makes
# it longer.
set -eu
seed=${WEFT_SEED:-$$}
"$WEFT_BUILD/test/kill_writer" kills "${WEFT_KILLS:-200}" "$seed" "$WEFT_BUILD/weft"
"$WEFT_BUILD/test/kill_writer" cuts 40 "$seed" "$WEFT_BUILD/weft"
