/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal's size: there is no terminal here, and ioctl says so. */
#ifndef WEFT_SHIM_IOCTL_H
#define WEFT_SHIM_IOCTL_H
#include_next <sys/ioctl.h>

#define TIOCGWINSZ 0x5413
struct winsize {
	unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
#endif
