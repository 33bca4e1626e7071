/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing, for LD_PRELOAD: what the loader alone takes for a library more, which is the floor of what `weft run` costs
 * each process. */
extern int bench_empty;
int bench_empty;
