/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>

#include "unwind/stack.h"

int weft__stack_bounds_self(struct weft__stack_bounds *ret)
{
	pthread_attr_t attr;
	void *low;
	size_t bytes;
	int error = pthread_getattr_np(pthread_self(), &attr);

	if (error)
		return -error;
	error = pthread_attr_getstack(&attr, &low, &bytes);
	pthread_attr_destroy(&attr);
	if (error)
		return -error;
	ret->low = (uint64_t)(uintptr_t)low;
	ret->high = ret->low + bytes;
	ret->sure = 1;
	return 0;
}
