/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "unwind/image.h"

#define FRAMES_MAX (1ull << 30)

/* How many bytes can be read at an address of the file, from a segment that is mapped for reading; 0 when none. */
static uint64_t readable(const struct dl_phdr_info *info, uint64_t vaddr)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_R && vaddr >= ph->p_vaddr &&
		    vaddr - ph->p_vaddr < ph->p_filesz)
			return ph->p_filesz - (vaddr - ph->p_vaddr);
	}
	return 0;
}

static const uint8_t *mapped(const struct dl_phdr_info *info, uint64_t vaddr)
{
	return (const uint8_t *)(uintptr_t)(info->dlpi_addr + vaddr);
}

static void build_id(const struct dl_phdr_info *info, const ElfW(Phdr) * ph, struct weft__module *module)
{
	uint64_t n = readable(info, ph->p_vaddr);
	struct weft__in in = weft__in(mapped(info, ph->p_vaddr), n < ph->p_memsz ? n : ph->p_memsz);

	while (in_left(&in) >= 12) {
		uint32_t name_n = get_u32(in.p), desc_n = get_u32(in.p + 4), type = get_u32(in.p + 8);
		const uint8_t *name, *desc;

		in_bytes(&in, 12);
		name = in_bytes(&in, ((uint64_t)name_n + 3) & ~3ull);
		desc = in_bytes(&in, ((uint64_t)desc_n + 3) & ~3ull);
		if (!name || !desc)
			return;
		if (type == NT_GNU_BUILD_ID && name_n == 4 && memcmp(name, "GNU", 4) == 0 &&
		    desc_n <= sizeof(module->build_id)) {
			memcpy(module->build_id, desc, desc_n);
			module->build_id_n = (uint8_t)desc_n;
			return;
		}
	}
}

int weft__image_describe(const struct dl_phdr_info *info, struct weft__module *module)
{
	uint64_t bias = info->dlpi_addr;
	int n_text = 0;

	module->bias = bias;
	module->start = module->text_start = UINT64_MAX;
	module->end = module->text_end = 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t start = bias + ph->p_vaddr, end = start + ph->p_memsz;

		if (ph->p_type == PT_NOTE && !module->build_id_n)
			build_id(info, ph, module);
		if (ph->p_type != PT_LOAD || end <= start)
			continue;
		if (start < module->start)
			module->start = start;
		if (end > module->end)
			module->end = end;
		if (!(ph->p_flags & PF_X))
			continue;
		module->code_readable = ++n_text == 1 && ph->p_flags & PF_R;
		if (start < module->text_start) {
			module->text_start = start;
			module->text_offset = ph->p_offset;
		}
		if (end > module->text_end)
			module->text_end = end;
	}
	return module->text_end ? 0 : -ENOENT;
}

/* Where .eh_frame begins and how many bytes of it there are, from its header. */
static int frame_range(const struct dl_phdr_info *info, const ElfW(Phdr) * ph, struct weft__cfi_input *in)
{
	uint64_t avail = readable(info, ph->p_vaddr), begin, last, room, end;

	if (avail > ph->p_memsz)
		avail = ph->p_memsz;
	if (weft__cfi_extent(mapped(info, ph->p_vaddr), avail, ph->p_vaddr, &begin, &last, &in->hdr_n) < 0)
		return -EINVAL;
	room = readable(info, begin);
	in->hdr = mapped(info, ph->p_vaddr);
	in->hdr_vaddr = ph->p_vaddr;
	in->bytes = mapped(info, begin);
	in->vaddr = begin;
	/* Without a list the section ends at an empty entry, which the walk finds. */
	in->n = room;
	if (last >= begin && room >= 12 && last - begin <= room - 12) {
		uint32_t n = get_u32(in->bytes + (last - begin));

		end = last - begin + (n == 0xffffffff ? 12 + get_u64(in->bytes + (last - begin) + 4) : 4 + (uint64_t)n);
		in->n = end < room ? end : room;
	}
	return in->n && in->n <= FRAMES_MAX && in->hdr_n <= FRAMES_MAX ? 0 : -EINVAL;
}

int weft__image_frames(const struct dl_phdr_info *info, struct weft__image_frames *ret)
{
	struct weft__cfi_input in = {0};
	struct weft__module module = {0};

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint8_t *bytes;

		if (ph->p_type != PT_GNU_EH_FRAME || frame_range(info, ph, &in) < 0)
			continue;
		bytes = weft__alloc(in.n + in.hdr_n);
		if (!bytes)
			return -ENOMEM;
		memcpy(bytes, in.bytes, in.n);
		memcpy(bytes + in.n, in.hdr, in.hdr_n);
		in.bytes = bytes;
		in.hdr = bytes + in.n;
		if (weft__image_describe(info, &module) == 0) {
			in.text_low = module.text_start - info->dlpi_addr;
			in.text_high = module.text_end - info->dlpi_addr;
		}
		ret->bytes = bytes;
		ret->in = in;
		return 0;
	}
	return -ENOENT;
}

void weft__image_mapped(const struct dl_phdr_info *info, struct weft__module *module)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		struct weft__cfi_input in = {0};
		struct weft__cfi cfi = {.in = in};

		if (ph->p_type != PT_GNU_EH_FRAME)
			continue;
		in.hdr_n = readable(info, ph->p_vaddr);
		if (in.hdr_n > ph->p_memsz)
			in.hdr_n = ph->p_memsz;
		in.hdr = mapped(info, ph->p_vaddr);
		in.hdr_vaddr = ph->p_vaddr;
		if (weft__cfi_begin(in.hdr, in.hdr_n, in.hdr_vaddr, &in.vaddr) < 0)
			return;
		in.n = readable(info, in.vaddr);
		in.bytes = mapped(info, in.vaddr);
		in.text_low = module->text_start - module->bias;
		in.text_high = module->text_end - module->bias;
		cfi.in = in;
		if (in.n && in.n <= FRAMES_MAX && weft__cfi_listed(&cfi))
			module->mapped = in;
		return;
	}
}
