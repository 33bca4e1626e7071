/* SPDX-License-Identifier: Apache-2.0 */
/* The source for kernel addresses. kallsyms is that of the kernel that runs now: it is used only for the same build,
 * and when the recorded kernel lay elsewhere (each boot chooses anew) its text is shifted to where ours lies. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "symbol/file.h"
#include "symbol/kallsyms.h"
#include "symbol/source.h"

#define FILE_MAX ((uint64_t)256 << 20)
#define NT_GNU_BUILD_ID_TYPE 3

struct kernel {
	struct weft__source source;
	bool looked;
	struct weft__buf text;
	struct weft__kallsyms syms;
	struct weft__buf notes;
};

/* The build-id among the notes of the running kernel. */
static const uint8_t *running_build_id(struct kernel *kernel, uint32_t *ret_n)
{
	struct weft__in in = weft__in(kernel->notes.bytes, kernel->notes.n);

	while (in_left(&in) >= 12) {
		uint32_t name_n = get_u32(in.p), n = get_u32(in.p + 4), type = get_u32(in.p + 8);
		const uint8_t *name, *bytes;

		in_bytes(&in, 12);
		name = in_bytes(&in, ((uint64_t)name_n + 3) & ~UINT64_C(3));
		bytes = in_bytes(&in, ((uint64_t)n + 3) & ~UINT64_C(3));
		if (!name || !bytes)
			return NULL;
		if (type == NT_GNU_BUILD_ID_TYPE && name_n == 4 && !memcmp(name, "GNU", 4)) {
			*ret_n = n;
			return bytes;
		}
	}
	return NULL;
}

static int look(struct kernel *kernel)
{
	int failed;

	kernel->looked = true;
	weft__file_read(&kernel->notes, "/sys/kernel/notes", 65536);
	failed = weft__file_read(&kernel->text, kernel->source.env->opts.kallsyms, FILE_MAX);
	if (!failed)
		failed = weft__kallsyms_parse(&kernel->syms, (char *)kernel->text.bytes);
	return failed == -ENOMEM ? failed : 0;
}

static bool same_build(struct kernel *kernel, const struct weft__symbol_module *module)
{
	uint32_t n = 0;
	const uint8_t *id = running_build_id(kernel, &n);

	/* Who names another file says that it is the right one. */
	return !id || strcmp(kernel->source.env->opts.kallsyms, "/proc/kallsyms") != 0 || !module->build_id ||
	       (n == module->build_id_n && !memcmp(id, module->build_id, n));
}

static int kernel_resolve(struct weft__source *source, struct weft__symbol_entry *module, uint64_t ip, uint64_t time_ns,
			  struct weft__frame_list *out)
{
	struct kernel *kernel = (struct kernel *)source;
	const struct weft__symbol_module *at = &module->at;
	const struct weft__kallsym *sym;
	const char *name;

	(void)time_ns;
	if ((int64_t)ip >= 0) /* the kernel has the upper half */
		return 0;
	if (!kernel->looked && look(kernel) < 0)
		return -ENOMEM;
	if (kernel->syms.hidden)
		weft__symbol_why(source->env, module, "%s hides addresses: set kernel.kptr_restrict to 0 or be root",
				 source->env->opts.kallsyms);
	else if (!kernel->syms.n)
		weft__symbol_why(source->env, module, "%s has no symbols", source->env->opts.kallsyms);
	if (!same_build(kernel, at)) {
		weft__symbol_why(source->env, module, "recorded on another kernel than the one that runs here");
		return 0;
	}
	if (at->start && kernel->syms.text && ip >= at->start && ip < at->end)
		ip += kernel->syms.text - at->start;
	sym = weft__kallsyms_get(&kernel->syms, ip);
	if (!sym)
		return 0;
	name = weft__texts_add(&source->env->texts, sym->name);
	return name ? weft__frame_add(source->env, out, name, NULL, 0, ip - sym->address) : -ENOMEM;
}

static int kernel_open(struct weft__source **ret, struct weft__symbol_env *env)
{
	struct kernel *kernel = weft__calloc(1, sizeof(*kernel));

	(void)env;
	if (!kernel)
		return -ENOMEM;
	*ret = &kernel->source;
	return 0;
}

static void kernel_close(struct weft__source *source)
{
	struct kernel *kernel = (struct kernel *)source;

	weft__kallsyms_fini(&kernel->syms);
	weft__buf_free(&kernel->text);
	weft__buf_free(&kernel->notes);
	weft__free(kernel);
}

const struct weft__source_ops weft__source_kernel = {"kernel", kernel_open, kernel_resolve, kernel_close};
