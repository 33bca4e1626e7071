/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted beside the figures: what was left out of them, and what was odd. One list for text and JSON. */
#include <stdio.h>

#include "print.h"
#include "report.h"

/* N(where it is counted, key in --json, whether it was left out of figures, sentence behind the count). A key of "" is
 * elsewhere in the JSON; a sentence of "" is not in the text. */
/* clang-format off */
#define NOTES(N) \
	N(r->poll.began_before, "polls_began_before", true, "polls began before the recording: not in the figures") \
	N(r->poll.cut, "polls_cut_by_gap", true, "polls have a gap in them: not in the figures") \
	N(r->poll.never_ended, "polls_never_ended", true, \
	  "polls were open when their thread ended: not in the figures") \
	N(r->poll.too_deep, "polls_nested_too_deep", true, "polls were nested too deep: not in the figures") \
	N(r->poll.delays_cut, "delays_cut_by_gap", true, \
	  "wakes have a gap between them and the poll: not in the figures") \
	N(r->task.untracked, "task_events_beyond_limit", true, \
	  "events were of tasks beyond the limit of tasks that are kept: their location is not known") \
	N(r->untracked.events, "thread_events_beyond_limit", true, \
	  "events were of threads beyond the limit of threads that are kept: not in the figures") \
	N(r->untracked.intervals_cut, "waits_and_switches_beyond_limit", true, \
	  "waits, switches and wall samples were dropped: more than the analysis holds; polls of that time have " \
	  "parts that are not measured") \
	N(r->untracked.intervals_late, "switches_too_late", true, "switches came too late to be of a poll") \
	N(r->untracked.threads, "threads_off_cpu_beyond_limit", true, \
	  "switches, waits and wall samples were of threads beyond the limit of threads that are kept") \
	N(r->malformed, "malformed_events", true, "events had fewer fields than their kind has: not in the figures") \
	N(r->n_kind[WEFT_KIND_WAKE], "wakes", false, "") \
	N(r->task.wakes_again, "wakes_again", false, "wakes were of a task that had been woken and not polled yet") \
	N(r->task.late_causes, "late_wakes_and_spawns", false, \
	  "wakes and spawns have a time just behind the poll that they caused: taken as no delay") \
	N(r->task.ids_reused, "task_ids_reused_without_end", false, \
	  "task ids were spawned again without an end of the earlier task, which counts as gone") \
	N(r->poll.open, "polls_running", false, "") \
	N(r->samples.beyond_polls, "", false, \
	  "samples are in no poll's list of stacks: more than the analysis holds at a time") \
	N(report->rec->frames.stacks_beyond, "", false, "stacks are not kept: more than the analysis holds")
/* clang-format on */

struct note {
	uint64_t n;
	const char *key;
	bool left_out;
	const char *text;
};

#define N(n, key, left_out, text) {n, key, left_out, text},
#define LIST(name)                                                                                                     \
	const struct weft__result *r = report->result;                                                                 \
	const struct note name[] = {NOTES(N)};                                                                         \
	size_t i

void report_print_notes(const struct report *report)
{
	LIST(notes);
	char count[CLI_FIGURE];
	bool any = false;

	for (i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (!notes[i].n || !notes[i].text[0])
			continue;
		if (!any)
			cli_heading("Notes");
		any = true;
		printf("  %s %s\n", cli_count(notes[i].n, count), notes[i].text);
	}
}

void report_json_notes(struct weft__json *json, const struct report *report)
{
	LIST(notes);

	weft__json_begin(json, "left_out", '{');
	for (i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (notes[i].left_out)
			weft__json_u64(json, notes[i].key, notes[i].n);
	weft__json_end(json, '}');
	for (i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (!notes[i].left_out && notes[i].key[0])
			weft__json_u64(json, notes[i].key, notes[i].n);
}
