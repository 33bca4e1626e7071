/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of calls of the system, as the command has them: made from its header (cmake/viewer.cmake). */
#include <weft_syscalls.h>
