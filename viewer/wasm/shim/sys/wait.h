/* SPDX-License-Identifier: Apache-2.0 */
/* What a status of wait(2) says, on Linux: segments have such numbers. */
#ifndef WEFT_SHIM_WAIT_H
#define WEFT_SHIM_WAIT_H
#define WTERMSIG(status) ((status)&0x7f)
#define WEXITSTATUS(status) (((status)&0xff00) >> 8)
#define WIFEXITED(status) (WTERMSIG(status) == 0)
#define WIFSIGNALED(status) (((signed char)(((status)&0x7f) + 1) >> 1) > 0)
#endif
