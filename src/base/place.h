/* SPDX-License-Identifier: Apache-2.0 */
/* Where variables and code are, for the sake of forks. Each page that a fork's parent or child writes to is one more
 * fault, each page of code that the child runs, too, and each page table is one more to copy. */
#ifndef WEFT_BASE_PLACE_H
#define WEFT_BASE_PLACE_H

/* Large tables that most processes never touch: behind all others, as the preload library is linked with sections
 * sorted by name. */
#define LARGE_TABLE __attribute__((section(".bss.large")))
/* What is written to in each fork of a process that records: side by side. */
#define FORK_DATA __attribute__((section("weft_fork")))
/* Code that runs in each child of fork, however short. */
#define FORK_CODE __attribute__((section(".text.hot.small")))

#endif
