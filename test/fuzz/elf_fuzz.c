/* SPDX-License-Identifier: Apache-2.0 */
/* A program file: its symbols, its DWARF and its MiniDebugInfo, asked for addresses all over it. */
#include <stdlib.h>
#include <string.h>

#include "symbol/minidebug.h"
#include "symbol/object.h"

#define ADDRESSES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct weft__symbol_module module = {.path = "fuzz", .end = UINT64_MAX};
	struct weft__symbol_env env = {0};
	struct weft__object object = {0};
	struct weft__elf_image mini = {0};
	void *copy = malloc(size + 1);

	memcpy(copy, data, size);
	if (weft__object_open_memory(&object, copy, size) < 0)
		abort();
	for (uint64_t i = 0; object.file.elf && i < ADDRESSES; i++) {
		struct weft__frame_list list = {.n = 0};
		int n = weft__object_resolve(&object, &env, &module, i * size / ADDRESSES, &list);

		if (n < 0 || n > WEFT__FRAMES_MAX)
			abort();
		for (int j = 0; j < n; j++)
			if (!list.at[j].function)
				abort();
	}
	if (object.file.elf && weft__minidebug_open(&mini, &object.file) == 0)
		weft__elf_image_close(&mini);
	weft__object_close(&object);
	weft__texts_fini(&env.texts);
	free(copy);
	return 0;
}
