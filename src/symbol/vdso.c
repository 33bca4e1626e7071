/* SPDX-License-Identifier: Apache-2.0 */
/* The source for the vDSO, which is in no file: our own process has one too, and when the kernel is the same so is
 * the image. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "symbol/object.h"
#include "symbol/source.h"

struct vdso {
	struct weft__source source;
	bool looked;
	struct weft__object object;
};

static int look(struct vdso *vdso)
{
	unsigned long start, end;
	char line[512];
	FILE *maps;
	int failed = 0;

	vdso->looked = true;
	maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return 0;
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "[vdso]") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		failed = weft__object_open_memory(&vdso->object, (void *)start, end - start);
		break;
	}
	fclose(maps);
	return failed;
}

static int vdso_resolve(struct weft__source *source, struct weft__symbol_entry *module, uint64_t ip, uint64_t time_ns,
			struct weft__frame_list *out)
{
	struct vdso *vdso = (struct vdso *)source;

	(void)time_ns;
	if (strcmp(module->at.path, "[vdso]") != 0)
		return 0;
	if (!vdso->looked && look(vdso) < 0)
		return -ENOMEM;
	if (!vdso->object.file.elf)
		return 0;
	if (module->at.build_id_n &&
	    !weft__elf_image_is_build(&vdso->object.file, module->at.build_id, module->at.build_id_n)) {
		weft__symbol_why(source->env, module, "recorded on another kernel than the one that runs here");
		return 0;
	}
	return weft__object_resolve(&vdso->object, source->env, &module->at, ip, out);
}

static int vdso_open(struct weft__source **ret, struct weft__symbol_env *env)
{
	struct vdso *vdso = weft__calloc(1, sizeof(*vdso));

	(void)env;
	if (!vdso)
		return -ENOMEM;
	*ret = &vdso->source;
	return 0;
}

static void vdso_close(struct weft__source *source)
{
	struct vdso *vdso = (struct vdso *)source;

	weft__object_close(&vdso->object);
	weft__free(vdso);
}

const struct weft__source_ops weft__source_vdso = {"vdso", vdso_open, vdso_resolve, vdso_close};
