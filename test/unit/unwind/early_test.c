/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks before tables are made: rules from the mapped call frame information, for modules that nobody unloads. */
#include "oracle.h"
#include "unwind/on_demand.h"
#include "weft_test.h"

/* A rule and all that it refers to. */
struct whole {
	struct weft__rule rule;
	uint8_t special[WEFT__SPECIAL_MAX];
};

static int early_rule(const struct weft__module *module, uint64_t addr, struct whole *ret)
{
	struct weft__on_demand *early = weft__on_demand_take(module, addr);

	memset(ret, 0, sizeof(*ret));
	if (!early)
		return 0;
	ret->rule = early->rule;
	if (early->rule.kind == RULE_SPECIAL)
		memcpy(ret->special, early->room.bytes, early->room.special.bytes);
	weft__on_demand_give(early);
	return 1;
}

static int table_rule(const struct weft__module *module, uint64_t addr, struct whole *ret)
{
	const struct weft__unwind_table *table = weft__module_table(module);
	uint32_t number = table ? weft__unwind_table_find(table, addr - module->bias) : 0;

	memset(ret, 0, sizeof(*ret));
	if (!number)
		return 0;
	ret->rule = table->rules[number];
	if (ret->rule.kind == RULE_SPECIAL) {
		const struct weft__special *special = (const void *)(table->specials + ret->rule.cfa_off);

		memcpy(ret->special, special, special->bytes);
		ret->rule.cfa_off = 0; /* its place */
	}
	return 1;
}

/* Between functions the table goes on with the rows of the one before. */
static int is_padding(const struct weft__module *module, uint64_t addr, const struct whole *rule)
{
	struct whole before;

	for (uint64_t i = 1; i <= 16; i++)
		if (early_rule(module, addr - i, &before))
			return memcmp(&before, rule, sizeof(before)) == 0;
	return 0;
}

TEST(rules_without_a_table_are_those_of_the_table)
{
	static struct whole early, late;
	const struct weft__modules *set;
	uint64_t looked = 0, found = 0, special = 0, differ = 0;
	uint32_t visit, with = 0;

	CHECK(weft__modules_refresh() >= 0);
	set = weft__modules_enter(&visit);
	for (uint32_t i = 0; i < set->n; i++) {
		const struct weft__module *module = set->module[i];

		with += module->mapped.hdr != NULL;
		CHECK(module->stays || !module->mapped.hdr);
		for (uint64_t at = module->text_start; module->mapped.hdr && at < module->text_end; at += 7) {
			int is = early_rule(module, at, &early), was = table_rule(module, at, &late);

			looked++;
			found += is != 0;
			special += is && early.rule.kind == RULE_SPECIAL;
			if (is != was ? is || !is_padding(module, at, &late) : memcmp(&early, &late, sizeof(late)) != 0)
				differ++;
		}
	}
	weft__modules_leave(visit);
	printf("  %llu places in %u modules, %llu with a rule, %llu special\n", (unsigned long long)looked, with,
	       (unsigned long long)found, (unsigned long long)special);
	CHECK(with >= 3); /* the program, libc, the vDSO or the loader */
	CHECK(found > looked / 2);
	CHECK(special > 0);
	CHECK_EQ(differ, 0);
}

static uint64_t first[DEPTH], second[DEPTH];
static size_t n_first, n_second;
static uint32_t first_flags, second_flags;
static int second_time;

static void look(int signal, siginfo_t *info, void *context)
{
	const struct weft__modules *set;
	struct weft__unwind_regs regs;
	uint32_t visit;

	(void)signal;
	(void)info;
	weft__unwind_regs_set(&regs, context);
	set = weft__modules_enter(&visit);
	if (second_time)
		n_second = weft__unwind(set, &regs, &my_stack, second, DEPTH, &second_flags);
	else
		n_first = weft__unwind(set, &regs, &my_stack, first, DEPTH, &first_flags);
	weft__modules_leave(visit);
}

static int compare(const void *a, const void *b)
{
	static int calls;

	if (++calls % 2 == 0) /* once in each sort of two */
		return 0;
	raise(SIGUSR1);
	return *(const int *)a - *(const int *)b;
}

static void look_through_libc(void)
{
	int two[2] = {2, 1};

	for (int i = 0; i < 2; i++)
		qsort(two, 2, sizeof(two[0]), compare);
}

static void handler_set(void)
{
	struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
}

TEST(stacks_are_whole_before_the_first_table)
{
	handler_set();
	stack_learn();
	weft__modules_stop();
	CHECK_EQ(weft__modules_look(), 1);
	for (second_time = 0; second_time < 2; second_time++) {
		look_through_libc();
		while (weft__modules_compile(NULL) > 0)
			;
	}
	CHECK(n_first > 5);
	CHECK_EQ(first_flags, WEFT__UNWIND_COMPLETE);
	CHECK_EQ(second_flags, WEFT__UNWIND_COMPLETE);
	CHECK_EQ(n_first, n_second);
	CHECK(memcmp(first, second, n_first * 8) == 0);
}

static void inside(void)
{
	raise(SIGUSR1);
}

TEST(a_library_that_may_go_is_marked_and_its_table_made_next)
{
	const struct weft__module *module;
	const struct weft__modules *set;
	void (*run)(void), (**hook)(void);
	uint32_t visit, pending = 0;
	void *lib = fixture_open("cc", "plain.c", "");

	if (!lib)
		SKIP("no compiler");
	handler_set();
	stack_learn();
	weft__modules_stop();
	CHECK_EQ(weft__modules_look(), 1);
	*(void **)&run = dlsym(lib, "fixture_deep");
	hook = dlsym(lib, "fixture_inside");
	REQUIRE(run && hook);
	*hook = inside;
	second_time = 0;
	run();
	CHECK(!(first_flags & WEFT__UNWIND_COMPLETE) || first_flags & WEFT__UNWIND_FP);
	CHECK(first_flags & WEFT__UNWIND_EARLY);
	set = weft__modules_enter(&visit);
	module = weft__modules_find(set, (uint64_t)(uintptr_t) * (void **)&run);
	REQUIRE(module);
	CHECK(!module->stays && module->pending && !module->mapped.hdr);
	CHECK_EQ(weft__modules_compile(NULL), 1);
	CHECK(!module->pending && module->table);
	for (uint32_t i = 0; i < set->n; i++)
		pending += set->module[i]->pending;
	CHECK_EQ(pending, set->n - 1);
	weft__modules_leave(visit);
	run(); /* the others are as they were: early, but for libraries that were opened */
	CHECK_EQ(first_flags & (WEFT__UNWIND_COMPLETE | WEFT__UNWIND_EARLY), WEFT__UNWIND_COMPLETE);
	CHECK(n_first > 300);
	*hook = NULL;
	dlclose(lib);
	CHECK(weft__modules_refresh() >= 0);
}

/* One that was opened later under the name of one that the program was linked with, and can be closed. */
TEST(a_later_library_of_a_needed_name_is_not_believed_to_stay)
{
	void *lib = fixture_open("cc", "plain.c", "-Wl,-soname,libc.so.6");
	const struct weft__modules *set;
	uint32_t visit, of_libc = 0, of_lib = 0;

	if (!lib)
		SKIP("no compiler");
	weft__modules_stop(); /* what is needed is found in the first look */
	CHECK(weft__modules_refresh() >= 0);
	set = weft__modules_enter(&visit);
	for (uint32_t i = 0; i < set->n; i++) {
		of_libc += strstr(set->module[i]->path, "/libc.so.6") && set->module[i]->stays;
		of_lib += strstr(set->module[i]->path, "/plain.c.so") && !set->module[i]->stays;
	}
	weft__modules_leave(visit);
	CHECK_EQ(of_libc, 1);
	CHECK_EQ(of_lib, 1);
	dlclose(lib);
	CHECK(weft__modules_refresh() >= 0);
}
