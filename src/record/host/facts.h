/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the process and the machine, as definition records. CALLER. What cannot be had is left out. */
#ifndef WEFT_HOST_FACTS_H
#define WEFT_HOST_FACTS_H

#include "segment/defs.h"

void weft__facts_host(struct weft__defs *defs);
/* container.c. Of Kubernetes and control groups. */
void weft__facts_container(struct weft__defs *defs);
/* The name that the program was called by; the last part of its path where that is not known. */
void weft__facts_program(char *to, size_t bytes);

#endif
