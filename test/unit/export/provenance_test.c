/* SPDX-License-Identifier: Apache-2.0 */
/* Which package code is of: from dpkg's files in a directory of the test, and from what paths say. */
#include "export/provenance.h"

#include <sys/stat.h>

#include "export/packages.h"
#include "unit/analyze/segfile.h"

static char dir[256];

static void put_file(const char *name, const char *text)
{
	FILE *f = fopen(segfile_path(dir, name), "we");

	REQUIRE(f);
	fputs(text, f);
	fclose(f);
}

static void begin(void)
{
	segfile_dir(dir, sizeof(dir));
	CHECK_EQ(mkdir(segfile_path(dir, "info"), 0700), 0);
	put_file("info/libc6:amd64.list", "/.\n/lib\n/lib/x86_64-linux-gnu/libc.so.6\n");
	put_file("info/zlib1g:amd64.list", "/.\n/usr/lib/x86_64-linux-gnu/libz.so.1.2.13\n");
	put_file("info/shop.list", "/.\n/opt/shop/bin/shop"); /* cut */
	put_file("info/shop.md5sums", "/opt/shop/other\n");
	put_file("status", "Package: zlib1g\nStatus: install ok installed\nPriority: optional\nArchitecture: i386\n"
			   "Version: 1:0-wrong\n\n"
			   "Package: zlib1g\nPriority: optional\nArchitecture: amd64\nSource: zlib (1:1.2.13)\n"
			   "Version: 1:1.2.13.dfsg-1\nDescription: a\n Version: not this\n\n"
			   "Package: libc6\nArchitecture: amd64\nSource: glibc\nVersion: 2.36-9\n\n"
			   "Package: shop\nArchitecture: all\nVersion: 7");
}

static void end(void)
{
	static const char *const names[] = {"info/libc6:amd64.list",
					    "info/zlib1g:amd64.list",
					    "info/shop.list",
					    "info/shop.md5sums",
					    "status",
					    NULL};
	size_t i;

	for (i = 0; names[i]; i++)
		unlink(segfile_path(dir, names[i]));
	rmdir(segfile_path(dir, "info"));
	CHECK_EQ(rmdir(dir), 0);
}

static void add_module(struct weft__recording *rec, uint32_t kind, const char *path)
{
	struct weft_module module = {.id = (uint32_t)rec->frames.n_modules + 1, .kind = kind, .path = path};

	CHECK_EQ(weft__frames_add_module(&rec->frames, &module), 0);
}

static void add_fact(struct weft__recording *rec, const char *key, const char *value)
{
	struct weft_fact fact = {key, value};

	CHECK_EQ(weft__names_add_fact(&rec->names, &fact), 0);
}

static void check_place(struct weft__provenance *p, const char *module, const char *file, const char *expected)
{
	const struct weft__package *package;
	char text[300];
	uint32_t at;

	CHECK_EQ(weft__provenance_place(p, module, false, file, &at), 0);
	package = &p->packages[at];
	snprintf(text, sizeof(text), "%s %s %s %s", weft__origin_name(package->origin), package->manager,
		 weft__provenance_text(p, package->name), weft__provenance_text(p, package->version));
	CHECK_STR(text, expected);
}

/* Three files, of which one is known already; recorded on this machine. */
static void more_modules(struct weft__defs *defs, const struct segfile *file)
{
	struct weft_module modules[] = {{.id = 1, .kind = WEFT_MODULE_FILE, .path = "/opt/shop/lib/libcart.so.3"},
					{.id = 2, .kind = WEFT_MODULE_FILE, .path = "/opt/shop/lib/libpay.so"},
					{.id = 3, .kind = WEFT_MODULE_FILE, .path = "/opt/shop/lib/libold.so"}};
	char host[256] = "";
	size_t i;

	(void)file;
	gethostname(host, sizeof(host) - 1);
	for (i = 0; i < 3; i++) {
		modules[i].start = 0x1000 * (i + 1);
		modules[i].end = modules[i].start + 0x1000;
		weft__defs_module(defs, &modules[i]);
	}
	weft__defs_fact(defs, "host.name", host);
	weft__defs_fact(defs, "package:/opt/shop/lib/libold.so", "library debian old 1");
}

TEST(code_is_of_the_program_its_libraries_the_system_the_kernel_or_generated)
{
	struct weft__recording rec = {0};
	struct weft__provenance p;
	uint32_t at;

	begin();
	add_module(&rec, WEFT_MODULE_FILE, "/opt/shop/bin/shop");
	add_module(&rec, WEFT_MODULE_FILE, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	add_module(&rec, WEFT_MODULE_FILE, "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13");
	add_module(&rec, WEFT_MODULE_FILE, "/opt/shop/lib/libcart.so.3");
	add_module(&rec, WEFT_MODULE_FILE, "/var/lib/gems/3.1.0/gems/nio4r-2.5.8/lib/nio4r_ext.so");
	add_module(&rec, WEFT_MODULE_KERNEL, "[kernel]");
	add_module(&rec, WEFT_MODULE_CODE, "");
	add_fact(&rec, "process.exe", "/opt/shop/bin/shop");
	add_fact(&rec, "host.kernel", "6.1.0");
	CHECK_EQ(weft__provenance_init(&p, &rec, dir), 0);
	CHECK_EQ(weft__provenance_modules(&p), 0);
	check_place(&p, "/opt/shop/bin/shop", "", "program debian shop 7");
	check_place(&p, "/usr/lib/x86_64-linux-gnu/libc.so.6", "", "system debian libc6 2.36-9");
	check_place(&p, "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13", "deflate.c",
		    "library debian zlib1g 1:1.2.13.dfsg-1");
	check_place(&p, "/opt/shop/lib/libcart.so.3", NULL, "library file libcart.so 3");
	check_place(&p, "/var/lib/gems/3.1.0/gems/nio4r-2.5.8/lib/nio4r_ext.so", NULL, "library gem nio4r 2.5.8");
	check_place(&p, "", "", "generated  generated code ");
	CHECK_EQ(weft__provenance_place(&p, "x", true, "", &at), 0);
	CHECK_EQ(p.packages[at].origin, WEFT__ORIGIN_KERNEL);
	CHECK_STR(weft__provenance_text(&p, p.packages[at].version), "6.1.0");
	weft__provenance_fini(&p);
	weft__frames_fini(&rec.frames);
	weft__names_fini(&rec.names);
	end();
}

TEST(a_source_file_of_a_crate_names_its_package_whatever_file_it_was_linked_into)
{
	struct weft__recording rec = {0};
	struct weft__provenance p;

	begin();
	add_module(&rec, WEFT_MODULE_FILE, "/opt/shop/bin/shop");
	CHECK_EQ(weft__provenance_init(&p, &rec, dir), 0);
	check_place(&p, "/opt/shop/bin/shop",
		    "/root/.cargo/registry/src/index.crates.io-6f17/serde_json-1.0.107/src/de.rs",
		    "library cargo serde_json 1.0.107");
	check_place(&p, "/opt/shop/bin/shop", "/c/registry/src/x/wasi-0.11.0+wasi-snapshot/src/lib.rs",
		    "library cargo wasi 0.11.0+wasi-snapshot");
	check_place(&p, "/opt/shop/bin/shop", "/rustc/90b35a6/library/core/src/slice.rs", "system rust core 90b35a6");
	check_place(&p, "/opt/shop/bin/shop", "/src/registry/src/", "library debian shop 7");
	check_place(&p, "/opt/shop/bin/shop", "src/main.rs", "library debian shop 7");
	weft__provenance_fini(&p);
	weft__frames_fini(&rec.frames);
	weft__names_fini(&rec.names);
	end();
}

TEST(a_machine_without_dpkg_has_the_names_of_files)
{
	struct weft__recording rec = {0};
	struct weft__provenance p;

	add_module(&rec, WEFT_MODULE_FILE, "/usr/lib/libz.so.1.2.13");
	CHECK_EQ(weft__provenance_init(&p, &rec, "/nowhere/at/all"), 0);
	check_place(&p, "/usr/lib/libz.so.1.2.13", "", "library file libz.so 1.2.13");
	weft__provenance_fini(&p);
	weft__frames_fini(&rec.frames);
	weft__names_fini(&rec.names);
}

TEST(lists_with_names_like_those_of_the_files_come_first_and_the_others_only_if_needed)
{
	struct weft__dpkg dpkg = {0};

	begin();
	CHECK_EQ(weft__dpkg_want(&dpkg, "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13"), 0);
	CHECK_EQ(weft__dpkg_want(&dpkg, "/home/me/libcart.so"), 0); /* Debian has nothing there */
	CHECK_EQ(weft__dpkg_want(&dpkg, "/usr/local/lib/libcart.so"), 0);
	CHECK_EQ(weft__dpkg_read(&dpkg, dir), 0);
	CHECK_EQ(dpkg.n_read, 1);
	CHECK(weft__dpkg_get(&dpkg, "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13") != NULL);
	CHECK(weft__dpkg_get(&dpkg, "/home/me/libcart.so") == NULL);
	weft__dpkg_fini(&dpkg);
	CHECK_EQ(weft__dpkg_want(&dpkg, "/usr/lib/x86_64-linux-gnu/libm.so.6"), 0); /* of libc6, if it were there */
	CHECK_EQ(weft__dpkg_read(&dpkg, dir), 0);
	CHECK_EQ(dpkg.n_read, 3);
	weft__dpkg_fini(&dpkg);
	end();
}

TEST(facts_of_the_segment_say_it_on_another_machine)
{
	struct weft__recording rec = {0};
	struct weft__provenance p;

	add_module(&rec, WEFT_MODULE_FILE, "/opt/shop/bin/shop");
	add_module(&rec, WEFT_MODULE_FILE, "/usr/lib/libc.so.6");
	add_module(&rec, WEFT_MODULE_FILE, "/opt/a b.so");
	add_fact(&rec, "host.name", "a-host-that-this-one-is-not");
	add_fact(&rec, "process.exe", "/opt/shop/bin/shop");
	add_fact(&rec, "package:/opt/shop/bin/shop", "program debian shop 7");
	add_fact(&rec, "package:/usr/lib/libc.so.6", "system debian libc6 2.36-9");
	CHECK_EQ(weft__provenance_init(&p, &rec, NULL), 0);
	CHECK(p.elsewhere); /* of one file nothing is said */
	weft__provenance_fini(&p);
	add_fact(&rec, "package:/opt/a b.so", "library - a_b.so");
	CHECK_EQ(weft__provenance_init(&p, &rec, NULL), 0);
	CHECK(!p.elsewhere);
	check_place(&p, "/opt/shop/bin/shop", "", "program debian shop 7");
	check_place(&p, "/usr/lib/libc.so.6", "", "system debian libc6 2.36-9");
	check_place(&p, "/opt/a b.so", "", "library  a_b.so ");
	weft__provenance_fini(&p);
	weft__frames_fini(&rec.frames);
	weft__names_fini(&rec.names);
}

TEST(odd_facts_about_packages_are_passed_over)
{
	static const char *const odd[] = {"", "system", "system debian", "system debian ", "  "};
	size_t i;

	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct weft__recording rec = {0};
		struct weft__provenance p;

		add_module(&rec, WEFT_MODULE_FILE, "/opt/x/libx.so.1");
		add_fact(&rec, "host.name", "a-host-that-this-one-is-not");
		add_fact(&rec, "package:/opt/x/libx.so.1", odd[i]);
		CHECK_EQ(weft__provenance_init(&p, &rec, NULL), 0);
		check_place(&p, "/opt/x/libx.so.1", "", "library file libx.so 1");
		weft__provenance_fini(&p);
		weft__frames_fini(&rec.frames);
		weft__names_fini(&rec.names);
	}
}

/* The module of this machine that every test has. */
TEST(files_are_looked_up_once_and_their_packages_are_facts_of_a_segment)
{
	static const char *const names[] = {"a.weft", NULL};
	const struct segfile_event events[] = {EV(SEGFILE_MONO, 1, SPAWN, 7, 2)};
	struct segfile file = {.recording = 1, .pid = "42", .events = events, .n_events = 1};
	struct weft__package_cache *cache = weft__packages_open();
	struct weft_segment *segment;
	struct weft__defs first = {0}, again = {0};
	char at[256];

	segfile_dir(at, sizeof(at));
	segfile_more = more_modules;
	segfile_write(&file, segfile_path(at, "a.weft"));
	REQUIRE(cache && weft_segment_open(&segment, segfile_path(at, "a.weft"), NULL) == 0);
	CHECK_EQ(weft__packages_add(cache, segment, &first), 0);
	CHECK_EQ(weft__packages_add(cache, segment, &again), 0);
	CHECK_EQ(first.n, 2); /* the third has its fact */
	CHECK(first.out.n == again.out.n && memcmp(first.out.bytes, again.out.bytes, first.out.n) == 0);
	CHECK(memmem(first.out.bytes, first.out.n, "library file libcart.so 3", 25));
	weft__defs_fini(&first);
	weft__defs_fini(&again);
	weft_segment_close(segment);
	weft__packages_close(cache);
	segfile_remove(at, names);
}
