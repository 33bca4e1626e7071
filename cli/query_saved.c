/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that people ask often, and examples of how to ask. */
#include <stdio.h>
#include <string.h>

#include "query.h"

const struct query_saved query_saved[] = {
	{"worst-polls", "the longest polls, with what their time was spent on",
	 "select location, task, worker, begin_ns / 1e9 as begin_s, duration_ns / 1e6 as ms, on_cpu_ns / 1e6 as "
	 "on_cpu_ms,\n"
	 "  blocked_ns / 1e6 as blocked_ms, waiting_ns / 1e6 as waiting_ms, preempted_ns / 1e6 as preempted_ms\n"
	 "from poll order by duration_ns desc limit 20"},
	{"behind-polls", "polls that kept other tasks waiting: how many, and for how long together",
	 "select p.location, p.task, p.worker, p.begin_ns / 1e9 as begin_s, p.duration_ns / 1e6 as ms,\n"
	 "  count(*) as tasks, sum(w.behind_ns) / 1e6 as waited_ms\n"
	 "from poll w join poll p on p.id = w.behind_poll_id\n"
	 "group by p.id order by waited_ms desc limit 20"},
	{"locks", "locks by time waited",
	 "select kind, coalesce(object_name, name, '') as lock, object, count(*) as waits, sum(duration_ns) / 1e6 as "
	 "waited_ms,\n"
	 "  max(duration_ns) / 1e6 as longest_ms, sum(poll_id is not null) as in_polls\n"
	 "from wait where kind not in ('call', 'condition', 'end of a thread')\n"
	 "group by 1, 2, 3 order by waited_ms desc limit 20"},
	{"allocations", "what was allocated most, and where; only where a binding records it (Ruby: WEFT_RUBY_ALLOC)",
	 "select name, function, sum(count) as objects, sum(bytes) as bytes, count(*) as recorded\n"
	 "from alloc group by name, function order by objects desc limit 20"},
	{"lock-holders", "who held the locks that others waited for, and what they did meanwhile",
	 "select kind, coalesce(object_name, name, object) as lock,\n"
	 "  coalesce(holder_location, holder, holder_tid) as holder,\n"
	 "  holder_function, count(*) as waits, sum(duration_ns) / 1e6 as waited_ms\n"
	 "from wait where holder_tid is not null\n"
	 "group by 1, 2, 3, 4 order by waited_ms desc limit 20"},
	{"calls", "blocking calls inside of polls, by time",
	 "select location, name, fd, about, function, count(*) as calls, sum(duration_ns) / 1e6 as blocked_ms\n"
	 "from slice where part = 'blocked'\n"
	 "group by 1, 2, 3, 4, 5 order by blocked_ms desc limit 20"},
	{"waits", "what threads waited for, in polls and outside of them, by time",
	 "select kind, coalesce(object_name, name, '') as name, fd, about, thread, count(*) as waits,\n"
	 "  sum(duration_ns) / 1e6 as waited_ms, max(duration_ns) / 1e6 as longest_ms\n"
	 "from wait group by 1, 2, 3, 4, 5 order by waited_ms desc limit 20"},
	{"functions-in-slow-polls", "functions that were on the CPU in polls over 10 ms",
	 "select s.function, count(*) as samples, sum(s.weight_ns) / 1e6 as cpu_ms, count(distinct s.poll_id) as "
	 "polls\n"
	 "from sample s join poll p on p.id = s.poll_id where p.duration_ns > 10000000\n"
	 "group by s.function order by cpu_ms desc limit 20"},
	{"functions", "functions by CPU time of their own",
	 "select function, count(*) as samples, sum(weight_ns) / 1e6 as cpu_ms\n"
	 "from sample group by function order by cpu_ms desc limit 20"},
	{"cpu-by-location", "CPU time by where tasks were spawned",
	 "select coalesce(location, state) as where_, count(*) as samples, sum(weight_ns) / 1e6 as cpu_ms\n"
	 "from sample group by 1 order by cpu_ms desc"},
	{"wake-chains", "which kind of task wakes which, how often, and how long until it is polled",
	 "select coalesce(from_location, '(outside of polls)') as from_location, to_location, count(*) as wakes,\n"
	 "  avg(delay_ns) / 1e3 as mean_us, percentile(delay_ns, 99) / 1e3 as p99_us\n"
	 "from wake group by 1, 2 order by wakes desc limit 30"},
	{"self-wakes", "tasks that wake themselves: polls that they asked for while they were polled",
	 "select location, count(distinct task) as tasks, count(*) as self_woken, sum(duration_ns) / 1e6 as ms\n"
	 "from poll where waker_task = task group by location order by self_woken desc limit 20"},
	{"never-polled", "tasks that were spawned and never polled; known only where every poll is recorded",
	 "select location, count(*) as tasks, min(spawn_ns) / 1e9 as first_s, sum(end_ns is null) as alive\n"
	 "from task where spawn_ns is not null and polls = 0\n"
	 "group by location order by tasks desc limit 20"},
	{"p99-by-minute", "p99 of polls by location and minute",
	 "select location, end_ns / 60000000000 as minute, count(*) as polls, percentile(duration_ns, 99) / 1e3 as "
	 "p99_us,\n"
	 "  max(duration_ns) / 1e3 as max_us\n"
	 "from poll where end_ns is not null group by 1, 2 order by 1, 2"},
	{"endpoints", "polls by endpoint of their context",
	 "select endpoint, count(*) as polls, count(distinct span) as spans, sum(duration_ns) / 1e6 as ms,\n"
	 "  percentile(duration_ns, 99) / 1e3 as p99_us\n"
	 "from poll where endpoint is not null group by endpoint order by ms desc limit 20"},
	{"off-cpu", "threads by time off the CPU, and in what",
	 "select coalesce(worker, thread, tid) as thread, state, function, count(*) as times,\n"
	 "  sum(duration_ns * count) / 1e6 as ms from offcpu group by 1, 2, 3 order by ms desc limit 20"},
	{"parks", "how long workers had nothing to do",
	 "select worker, sum(parks) as parks, sum(ns) / 1e6 as parked_ms from\n"
	 "  (select worker, 1 as parks, duration_ns as ns, end_ns from park\n"
	 "     where not exists (select 1 from park_count) or end_ns < (select min(time_ns - span_ns) from "
	 "park_count)\n"
	 "   union all select worker, count, parked_ns, time_ns from park_count)\n"
	 "group by worker order by worker"},
	{"missing", "what is missing, and why",
	 "select reason, thread, count, from_ns / 1e9 as from_s, to_ns / 1e9 as to_s from loss order by from_ns"},
	{"cost", "what weft itself cost",
	 "select what, sum(cpu_ns) / 1e6 as cpu_ms, 100.0 * sum(cpu_ns) / sum(span_ns) as percent_of_a_cpu\n"
	 "from cost group by what order by cpu_ms desc"},
	{NULL, NULL, NULL},
};

const struct query_saved *query_saved_find(const char *name)
{
	const struct query_saved *saved = query_saved;

	while (saved->name && strcmp(saved->name, name) != 0)
		saved++;
	return saved->name ? saved : NULL;
}

void query_saved_list(void)
{
	const struct query_saved *saved;
	const char *line, *end;

	for (saved = query_saved; saved->name; saved++) {
		printf("%s%s: %s\n", saved == query_saved ? "" : "\n", saved->name, saved->what);
		for (line = saved->sql; *line; line = *end ? end + 1 : end) {
			end = line + strcspn(line, "\n");
			printf("    %.*s\n", (int)(end - line), line);
		}
	}
}
