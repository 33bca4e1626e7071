/* SPDX-License-Identifier: Apache-2.0 */
/* This very process, as a recorder would describe it. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "symbol/symbol.h"
#include "weft_test.h"

struct self {
	struct weft__symbolizer *sym;
	struct {
		uint64_t start;
		uint64_t end;
		uint32_t id;
	} at[256];
	int n;
};

static const uint8_t *build_id_of(const struct dl_phdr_info *info, uint32_t *ret_n)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		const uint8_t *p = (const uint8_t *)(info->dlpi_addr + phdr->p_vaddr), *end = p + phdr->p_memsz;

		while (phdr->p_type == PT_NOTE && p + 12 <= end) {
			const ElfW(Nhdr) *note = (const void *)p;
			const uint8_t *desc = p + 12 + ((note->n_namesz + 3) & ~3u);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(p + 12, "GNU", 4)) {
				*ret_n = note->n_descsz;
				return desc;
			}
			p = desc + ((note->n_descsz + 3) & ~3u);
		}
	}
	return NULL;
}

static int add(struct dl_phdr_info *info, size_t size, void *data)
{
	struct self *self = data;
	char own[4096] = "";

	(void)size;
	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum && self->n < 256; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		struct weft__symbol_module module = {
			.path = info->dlpi_addr == getauxval(AT_SYSINFO_EHDR) ? "[vdso]"
				: info->dlpi_name[0]                          ? info->dlpi_name
									      : own,
			.start = info->dlpi_addr + phdr->p_vaddr,
			.end = info->dlpi_addr + phdr->p_vaddr + phdr->p_memsz,
			.offset = phdr->p_offset,
			.pid = (uint32_t)getpid(),
		};

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		module.build_id = build_id_of(info, &module.build_id_n);
		self->at[self->n].start = module.start;
		self->at[self->n].end = module.end;
		if (weft__symbolizer_add(self->sym, &module, &self->at[self->n].id) == 0)
			self->n++;
	}
	return 0;
}

static bool self_open(struct self *self)
{
	struct weft__symbolizer_opts opts = {.no_debuginfod = true};

	memset(self, 0, sizeof(*self));
	if (weft__symbolizer_open(&self->sym, &opts, NULL) < 0)
		return false;
	dl_iterate_phdr(add, self);
	return self->n > 0;
}

static int resolve(struct self *self, const void *code, struct weft__symbol_frames *ret)
{
	for (int i = 0; i < self->n; i++) {
		struct weft__symbol_place place = {.module = self->at[i].id, .ip = (uint64_t)code};

		if (place.ip >= self->at[i].start && place.ip < self->at[i].end)
			return weft__symbolizer_resolve(self->sym, &place, ret);
	}
	return 0;
}

__attribute__((noinline)) static int a_function_of_this_test(int x)
{
	return x + 1;
}

static const int line_of_it = __LINE__ - 5;

TEST(a_function_of_this_program_is_found)
{
	struct weft__symbol_frames frames;
	struct self self;

	REQUIRE(self_open(&self));
	REQUIRE(CHECK_EQ(resolve(&self, (void *)a_function_of_this_test, &frames), 1));
	CHECK_STR(frames.at[0].function, "a_function_of_this_test");
	CHECK(frames.at[0].file && strstr(frames.at[0].file, "self_test.c"));
	CHECK(frames.at[0].line >= (uint32_t)line_of_it && frames.at[0].line <= (uint32_t)line_of_it + 4);
	CHECK_EQ(frames.at[0].offset, 0);
	CHECK_EQ(a_function_of_this_test(1), 2);
	weft__symbolizer_close(self.sym);
}

TEST(a_function_of_libc_is_found)
{
	struct weft__symbol_frames frames;
	struct self self;
	Dl_info info;

	REQUIRE(self_open(&self));
	REQUIRE(dladdr(dlsym(RTLD_DEFAULT, "qsort_r"), &info));
	REQUIRE(resolve(&self, info.dli_saddr, &frames) > 0);
	CHECK(strstr(frames.at[frames.n - 1].function, "qsort_r"));
	weft__symbolizer_close(self.sym);
}

TEST(a_function_of_the_vdso_is_found)
{
	struct weft__symbol_frames frames;
	struct self self;
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *code = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;

	if (!code)
		SKIP("no vDSO here");
	REQUIRE(self_open(&self));
	REQUIRE(CHECK_EQ(resolve(&self, code, &frames), 1));
	CHECK(strstr(frames.at[0].function, "clock_gettime"));
	CHECK_STR(frames.source, "vdso");
	weft__symbolizer_close(self.sym);
}

TEST(the_running_kernel_is_asked_when_it_allows_it)
{
	struct weft__symbol_module module = {.path = "[kernel]"};
	struct weft__symbol_place place = {0};
	struct weft__symbol_frames frames;
	struct weft__symbolizer *sym;
	unsigned long long address = 0;
	FILE *in = fopen("/proc/kallsyms", "r");
	char line[512], name[256];

	REQUIRE(in);
	while (fgets(line, sizeof(line), in))
		if (sscanf(line, "%llx %*c %255s", &address, name) == 2 && !strcmp(name, "schedule"))
			break;
	fclose(in);
	if (!address || strcmp(name, "schedule") != 0)
		SKIP("/proc/kallsyms hides addresses");
	REQUIRE(weft__symbolizer_open(&sym, NULL, NULL) == 0);
	CHECK_EQ(weft__symbolizer_add(sym, &module, &place.module), 0);
	place.ip = address + 3;
	CHECK_EQ(weft__symbolizer_resolve(sym, &place, &frames), 1);
	CHECK_STR(frames.at[0].function, "schedule");
	CHECK_EQ(frames.at[0].offset, 3);
	weft__symbolizer_close(sym);
}
