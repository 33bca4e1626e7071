/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of this very process by their addresses. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbol/data.h"
#include "weft_test.h"

struct pair {
	long first, second;
};
extern struct pair data_global, data_zeroed[8];
struct pair data_global = {1, 2}, data_zeroed[8];
static long data_local = 3;

/* The mapping of this program's code. */
static int self(struct weft__symbol_module *ret, char path[4096])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset;
	char line[5000], mode[8], name[4096];
	ssize_t n = readlink("/proc/self/exe", path, 4095);

	path[n > 0 ? n : 0] = 0;
	*ret = (struct weft__symbol_module){.path = path};
	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &start, &end, mode, &offset, name) == 5 &&
		    mode[2] == 'x' && strcmp(name, path) == 0) {
			ret->start = start;
			ret->end = end;
			ret->offset = offset;
		}
	if (maps)
		fclose(maps);
	return ret->start != 0;
}

static int order(const void *left, const void *right)
{
	const struct weft__data_place *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static const struct weft__data_place *find(const struct weft__data_place *places, size_t n, const void *at)
{
	for (size_t i = 0; i < n; i++)
		if (places[i].address == (uint64_t)(uintptr_t)at)
			return &places[i];
	return NULL;
}

TEST(variables_have_the_names_of_their_symbols)
{
	long on_stack = data_local;
	const void *at[] = {&data_global, &data_global.second, &data_zeroed[3].second, &data_local, &on_stack};
	struct weft__data_place places[5] = {{0}};
	struct weft__symbol_module module;
	struct weft__texts texts = {0};
	char path[4096];
	size_t i;

	if (!self(&module, path))
		SKIP("the code of this program is not in /proc/self/maps");
	for (i = 0; i < 5; i++)
		places[i].address = (uint64_t)(uintptr_t)at[i];
	qsort(places, 5, sizeof(places[0]), order);
	CHECK_EQ(weft__data_name(NULL, &module, places, 5, &texts), 0);
	REQUIRE(find(places, 5, at[0])->name && find(places, 5, at[1])->name && find(places, 5, at[2])->name &&
		find(places, 5, at[3])->name);
	CHECK_STR(find(places, 5, at[0])->name, "data_global");
	CHECK_EQ(find(places, 5, at[0])->offset, 0);
	CHECK_STR(find(places, 5, at[1])->name, "data_global");
	CHECK_EQ(find(places, 5, at[1])->offset, sizeof(long));
	CHECK_STR(find(places, 5, at[2])->name, "data_zeroed");
	CHECK_EQ(find(places, 5, at[2])->offset, 3 * sizeof(struct pair) + sizeof(long));
	CHECK_STR(find(places, 5, at[3])->name, "data_local");
	CHECK(!find(places, 5, at[4])->name);
	weft__texts_fini(&texts);
}

TEST(a_file_of_another_build_names_nothing)
{
	static const uint8_t other[20] = {1, 2, 3};
	struct weft__data_place place = {.address = (uint64_t)(uintptr_t)&data_global};
	struct weft__symbol_module module;
	struct weft__texts texts = {0};
	char path[4096];

	if (!self(&module, path))
		SKIP("the code of this program is not in /proc/self/maps");
	module.build_id = other;
	module.build_id_n = sizeof(other);
	CHECK_EQ(weft__data_name(NULL, &module, &place, 1, &texts), 0);
	CHECK(!place.name);
	module.path = "/nowhere";
	CHECK_EQ(weft__data_name(NULL, &module, &place, 1, &texts), 0);
	CHECK(!place.name);
	weft__texts_fini(&texts);
}
