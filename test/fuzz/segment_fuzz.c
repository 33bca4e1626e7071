/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a segment. */
#include "fuzz/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_segment(data, size);
	return 0;
}
