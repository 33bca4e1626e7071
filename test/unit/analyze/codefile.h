/* SPDX-License-Identifier: Apache-2.0 */
/* Writes segments with modules, stacks and samples for tests, about the code of the test program itself. */
#ifndef WEFT_TEST_CODEFILE_H
#define WEFT_TEST_CODEFILE_H

#include <elf.h>
#include <limits.h>
#include <link.h>

#include "segfile.h"
#include "symbol/image.h"
#include "weft/recorder.h"

/* The mapping of the code that an address of this process is in. */
struct codefile_find {
	uintptr_t address;
	struct weft_module *module;
	bool found;
};

static inline int codefile_look(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct codefile_find *find = data;
	struct weft_module *module = find->module;
	static char paths[4][PATH_MAX];
	static unsigned next;

	(void)bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + phdr->p_vaddr;

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X) || find->address < start ||
		    find->address >= start + phdr->p_memsz)
			continue;
		module->kind = WEFT_MODULE_FILE;
		module->start = start;
		module->end = start + phdr->p_memsz;
		module->offset = phdr->p_offset;
		module->path = paths[next++ % 4];
		if (!realpath(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe", (char *)(uintptr_t)module->path))
			return 0;
		find->found = true;
		return 1;
	}
	return 0;
}

static inline bool codefile_module(struct weft_module *module, uint32_t id, const void *address)
{
	struct codefile_find find = {(uintptr_t)address, module, false};
	struct weft__elf_image image;
	const uint8_t *build_id = NULL;

	*module = (struct weft_module){.id = id};
	dl_iterate_phdr(codefile_look, &find);
	if (!find.found || weft__elf_image_open(&image, "", module->path) < 0)
		return false;
	module->build_id_n = weft__elf_image_build_id(&image, &build_id);
	if (module->build_id_n > WEFT_BUILD_ID_MAX)
		module->build_id_n = 0;
	if (module->build_id_n)
		memcpy(module->build_id, build_id, module->build_id_n);
	weft__elf_image_close(&image);
	return true;
}

struct codefile {
	uint64_t sequence;
	const char *pid;
	const char *boot_id; /* NULL: none */
	const struct weft_module *modules;
	size_t n_modules;
	const struct weft_stack *stacks;
	size_t n_stacks;
	int n_blocks; /* of events, each with a sample of every stack */
	int unsealed;
};

#define CODEFILE_BLOCK_NS 1000000u

static inline int codefile_events(struct weft__writer *w, struct weft__encoder *enc, const struct codefile *file,
				  int block)
{
	struct weft__batch batch;
	struct weft__buf payload = {0};
	uint64_t first_ns, last_ns, at = SEGFILE_MONO + (uint64_t)block * CODEFILE_BLOCK_NS;
	size_t i;
	int r;

	weft__batch_init(&batch, 1);
	r = weft__batch_begin(&batch, 1, 0, 0, 0);
	for (i = 0; !r && i < file->n_stacks; i++) {
		uint64_t fields[5] = {file->stacks[i].id, 0, 10101010, 0, WEFT_ENGINE_TIMER};

		r = weft__batch_add(&batch, at + i * 1000, WEFT_KIND_SAMPLE, fields, 5);
	}
	weft__batch_end(&batch, 0);
	if (!r)
		r = weft__encoder_events(enc, &batch, &payload, &first_ns, &last_ns);
	if (!r)
		r = weft__writer_block(w, BLOCK_EVENTS, 0, (uint32_t)file->n_stacks, first_ns, last_ns, &payload);
	weft__buf_free(&payload);
	weft__batch_fini(&batch);
	return r;
}

/* Answers the open file, for those who want to hold a lock. */
static inline int codefile_write(const struct codefile *file, const char *path)
{
	static const struct weft_thread thread = {1, 101, 0, "w0", SEGFILE_MONO};
	struct weft__segment_head head = {0, {7}, file->sequence, SEGFILE_MONO, SEGFILE_REAL};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	struct weft__encoder *enc = NULL;
	struct weft__writer w = {0};
	struct weft__defs defs = {0};
	size_t i;

	CHECK(fd >= 0);
	CHECK_EQ(weft__encoder_open(&enc, 1), 0);
	CHECK_EQ(weft__writer_begin(&w, fd, &head), 0);
	weft__defs_builtin_kinds(&defs);
	weft__defs_thread(&defs, &thread);
	if (file->pid)
		weft__defs_fact(&defs, "process.pid", file->pid);
	if (file->boot_id)
		weft__defs_fact(&defs, "host.boot_id", file->boot_id);
	for (i = 0; i < file->n_modules; i++)
		weft__defs_module(&defs, &file->modules[i]);
	for (i = 0; i < file->n_stacks; i++)
		weft__defs_stack(&defs, &file->stacks[i]);
	CHECK_EQ(weft__writer_defs(&w, enc, &defs), 0);
	for (int block = 0; block < file->n_blocks; block++)
		CHECK_EQ(codefile_events(&w, enc, file, block), 0);
	if (!file->unsealed)
		CHECK_EQ(weft__writer_seal(&w, 0), 0);
	weft__defs_fini(&defs);
	weft__writer_fini(&w);
	weft__encoder_close(enc);
	return fd;
}

#endif
