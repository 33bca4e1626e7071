/* SPDX-License-Identifier: Apache-2.0 */
/* Tracers whose otel_thread_ctx_v1 is another variable than ours: their library bound the name to itself, or the
 * loader keeps them apart from us (RTLD_LOCAL). It may have to wait for the loader, so it is done in the thread that
 * compiles unwind tables.
 *
 * A handler can read such a variable when it is at the same distance from the thread pointer in all threads, as the
 * loader arranges it for small ones. Whether it is so is found out in a second thread. The library stays loaded from
 * then on: what is in the place of its variable after it went would be taken for a pointer. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "record/wait/context.h"

#define FIND_NAMES 64

struct found_objects {
	uint64_t adds; /* the loader's count */
	uint32_t n;
	char names[FIND_NAMES][256];
};

static uint64_t found_adds; /* when it was looked at last */

static int count_objects(struct dl_phdr_info *info, size_t bytes, void *data)
{
	(void)bytes;
	*(uint64_t *)data = info->dlpi_adds;
	return 1;
}

/* Whether the object is another one than this and knows the name. To open an object is not harmless: while the
 * process exits, the loader takes those that it is done with for not begun, and runs their constructors again. */
static int may_have_it(const struct dl_phdr_info *info)
{
	static const char name[] = "otel_thread_ctx_v1";
	uintptr_t self = (uintptr_t)&weft__otel_find, strings = 0;
	const ElfW(Dyn) *dynamic = NULL;
	size_t bytes = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && self - (info->dlpi_addr + part->p_vaddr) < part->p_memsz)
			return 0;
		if (part->p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + part->p_vaddr);
	}
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == DT_STRTAB) /* the loader has added where the object is, as a rule */
			strings = dynamic->d_un.d_ptr < info->dlpi_addr ? dynamic->d_un.d_ptr + info->dlpi_addr
									: dynamic->d_un.d_ptr;
		if (dynamic->d_tag == DT_STRSZ)
			bytes = dynamic->d_un.d_val;
	}
	return strings && memmem((const void *)strings, bytes, name, sizeof(name)) != NULL;
}

static int list_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct found_objects *objects = data;

	(void)bytes;
	objects->adds = info->dlpi_adds;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS && may_have_it(info) && objects->n < FIND_NAMES &&
		    strlen(info->dlpi_name) < sizeof(objects->names[0]))
			snprintf(objects->names[objects->n++], sizeof(objects->names[0]), "%s", info->dlpi_name);
	return 0;
}

/* From the thread pointer of the calling thread. */
static int64_t distance_of(void *handle)
{
	char *at = dlsym(handle, "otel_thread_ctx_v1");

	return at ? at - (char *)__builtin_thread_pointer() : 0;
}

struct second_look {
	void *handle;
	int64_t distance;
};

static void *look_again(void *data)
{
	struct second_look *look = data;

	look->distance = distance_of(look->handle);
	return NULL;
}

static int same_in_all_threads(void *handle, int64_t distance)
{
	struct second_look look = {handle, 0};
	pthread_t thread;

	if (weft__thread_make(&thread, 0, look_again, &look) < 0)
		return 0;
	pthread_join(thread, NULL);
	return look.distance == distance;
}

static int is_known(int64_t distance)
{
	for (uint32_t i = 0; i < weft__otel_n_others; i++)
		if (weft__otel_others[i] == distance)
			return 1;
	return distance == (char *)&otel_thread_ctx_v1 - (char *)__builtin_thread_pointer();
}

void weft__otel_find(void)
{
	static struct found_objects objects;
	uint64_t adds = 0;

	dl_iterate_phdr(count_objects, &adds);
	if (adds == found_adds)
		return;
	objects.n = 0;
	dl_iterate_phdr(list_object, &objects);
	found_adds = objects.adds;
	for (uint32_t i = 0; i < objects.n; i++) {
		void *handle = dlopen(*objects.names[i] ? objects.names[i] : NULL, RTLD_LAZY | RTLD_NOLOAD);
		int64_t distance = handle ? distance_of(handle) : 0;
		uint32_t n = weft__otel_n_others;

		if (distance && !is_known(distance) && n < OTEL_OTHERS_MAX && same_in_all_threads(handle, distance)) {
			weft__otel_others[n] = distance;
			store_release(&weft__otel_n_others, n + 1);
		} else if (handle) {
			dlclose(handle);
		}
	}
}
