/* SPDX-License-Identifier: Apache-2.0 */
/* The machine is the one that this was built on, as in the command. */
#ifndef WEFT_SHIM_UTSNAME_H
#define WEFT_SHIM_UTSNAME_H
#include <string.h>

struct utsname {
	char machine[65];
};
static inline int uname(struct utsname *ret)
{
	strncpy(ret->machine, WEFT_SHIM_MACHINE, sizeof(ret->machine) - 1);
	ret->machine[sizeof(ret->machine) - 1] = 0;
	return 0;
}
#endif
