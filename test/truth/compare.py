# SPDX-License-Identifier: Apache-2.0
"""Compares a program's truth with the recordings of a report."""
import collections
import math

PARTS = ("on_cpu", "blocked", "waiting", "preempted")
SHARE = 0.02         # of a part's truth that it may be wrong by,
LEAST_NS = 50_000    # or so much, whichever is more
OUTSIDE_NS = 200_000 # of a poll that may lie outside the program's own readings, or 1 %: with more the poll says nothing,
LEFT_OUT = 0.3       # and when so many of them say nothing, the run does not
OPEN_NS = 500_000    # of CPU time of a poll that never ends after the program's last reading: it prints
SHORT_NS = 1_000_000 # waits below this are recorded in sums only: their time may be blocked, in what is not known
SIGMAS = 4.5         # that samples may be off by chance
SLACK_NS = 20_000    # between the program's clock and the trace's

# wrong: what is, in words. error: the worst of all parts, in percent of its poll (of 2.5 ms if that is longer: 2 % of
# it are the least tolerance). of: which part that is. polls: how many it has. unusable: why nothing can be said, or
# None.
Result = collections.namedtuple("Result", "wrong error of polls unusable")


class Wrong(Exception):
    """There is nothing to compare."""


def ms(ns):
    return "%.3f ms" % (ns / 1e6)


def tolerance(true_ns):
    return max(SHARE * true_ns, LEAST_NS)


def all_polls(recordings):
    for recording in recordings:
        for poll in recording["longest_polls"]:
            yield poll, False
        for poll in recording["still_running"]:
            yield {**poll, "duration_ns": poll["age_ns"]}, True


def find(true, recordings):
    """The innermost poll of the thread that has the whole of it; of one that never ended, that began before it."""
    best = None
    for poll, running in all_polls(recordings):
        begin = poll["begin_mono_ns"]
        if poll["tid"] != true["tid"] or begin > true["begin"] + SLACK_NS:
            continue
        if begin + poll["duration_ns"] + SLACK_NS < (true["begin"] if true["open"] else true["end"]):
            continue
        if true["open"] and not running:
            continue
        if best is None or poll["duration_ns"] < best["duration_ns"]:
            best = poll
    return best


def part(breakdown, name):
    return breakdown.get(name + "_ns") or 0


def judge_poll(true, poll, index):
    """(words or None, error, of) for each part."""
    breakdown = poll["breakdown"]
    wall = true["end"] - true["begin"]
    where = "%s #%d" % (true["name"], index)
    outside = max(0, poll["duration_ns"] - wall) if not true["open"] else 0
    missing = part(breakdown, "not_measured")
    unsure = true.get("unsure", 0)
    if true.get("either"):  # the program does not know what it was off the CPU for: an interpreter has waits of its own
        blocked = part(breakdown, "blocked") + part(breakdown, "waiting")
        breakdown = {**breakdown, "blocked_ns": blocked, "waiting_ns": 0}
    if true["waiting"] < SHORT_NS and not part(breakdown, "waiting"):
        true = {**true, "blocked": true["blocked"] + true["waiting"], "waiting": 0}
    for name in PARTS:
        told, exact = part(breakdown, name), true[name]
        # Of a poll that is still open the program knows its CPU time and not how long the report sees it.
        high = told - exact - outside
        low = exact - told - missing
        if true["open"]:
            high = high - OPEN_NS if name == "on_cpu" else 0
            low = 0
        off = max(0, high - unsure, low - unsure)
        limit = tolerance(exact)
        words = None
        if off > limit:
            words = "%s, %s: %s in the report, %s in truth (of %s; %s not measured)" % (
                where, name.replace("_", " "), ms(told), ms(exact), ms(poll["duration_ns"]), ms(missing))
        yield words, 100 * off / max(poll["duration_ns"], LEAST_NS / SHARE), "%s, %s" % (where, name.replace("_", " "))
    if missing > tolerance(wall) and not true["unmeasured"] and not true["open"]:
        yield "%s: %s of %s not measured (%s)" % (where, ms(missing), ms(poll["duration_ns"]), breakdown.get("not_measured_why")), \
            100 * missing / poll["duration_ns"], where + ", not measured"
    total = sum(part(breakdown, name) for name in PARTS) + missing
    if abs(total - poll["duration_ns"]) > tolerance(poll["duration_ns"]):
        yield "%s: the parts are %s and the poll %s" % (where, ms(total), ms(poll["duration_ns"])), None, ""


def judge_polls(truth, recordings):
    numbers, worst, wrong, outside = collections.Counter(), (None, ""), [], []
    most = max(OUTSIDE_NS, truth.get("outside", 0))  # an interpreter does more around a callback
    for true in truth["polls"]:
        index, wall = numbers[true["name"]], true["end"] - true["begin"]
        numbers[true["name"]] += 1
        poll = find(true, recordings)
        if poll is None:
            # Where the collector got no CPU while a ring filled, the report says how many events are missing: nothing
            # can be said of this run.
            lost = any(loss["reason"] == "ring full" for recording in recordings for loss in recording["losses"])
            (outside if lost else wrong).append("%s #%d of %s: no such poll in the report%s" % (
                true["name"], index, ms(wall), ", which says that events were lost" if lost else ""))
            continue
        if not true["open"] and poll["duration_ns"] - wall > max(most, 0.01 * wall):
            outside.append("%s #%d: the poll is %s, by the program's own clock %s" % (
                true["name"], index, ms(poll["duration_ns"]), ms(wall)))
            continue
        for words, error, of in judge_poll(true, poll, index):
            if words:
                wrong.append(words)
            if error is not None and (worst[0] is None or error > worst[0]):
                worst = error, of
    return wrong, worst, outside[0] if len(outside) > LEFT_OUT * len(truth["polls"]) else None


def judge_waits(truth, recordings):
    """Calls that only computed are no waits; what waited is one, with its name."""
    waits = [wait for recording in recordings for wait in recording["waits"]]
    off = sum(poll[name] for poll in truth["polls"] for name in PARTS[1:])
    for name in truth.get("no_waits", []):
        total = sum(wait["total_ns"] for wait in waits if wait["name"] == name)
        if total > off + tolerance(off):
            yield "%s is among the waits with %s; the program was off the CPU for %s" % (name, ms(total), ms(off))
    for name in truth.get("waits", []):
        told = sum(wait["total_ns"] for wait in waits if wait["name"] == name)
        least = sum(poll["blocked"] + poll["waiting"] for poll in truth["polls"])
        slack = SHARE * off + LEAST_NS * len(truth["polls"])
        if not least - slack <= told <= off + slack:
            yield "%s is among the waits with %s; the program was off the CPU in it for %s to %s" % (
                name, ms(told), ms(least), ms(off))


def judge_no_polls(truth, recordings):
    """Times of a thread that are in no poll, not even in one that still runs."""
    for no in truth.get("no_polls", []):
        for poll, running in all_polls(recordings):
            begin, end = poll["begin_mono_ns"], poll["begin_mono_ns"] + poll["duration_ns"]
            shared = min(end, no["end"]) - max(begin, no["begin"])
            if poll["tid"] == no["tid"] and shared > tolerance(no["end"] - no["begin"]):
                yield "%s of %s after the loop are in a poll%s" % (ms(shared), ms(no["end"] - no["begin"]),
                                                                   " that still runs" if running else "")


def judge_loops(truth, recordings):
    """Each of these threads has a loop, or the report says that some are missing."""
    known = {row["tid"] for recording in recordings for row in recording["workers"] if row["polls"] and row["polls"]["count"]}
    missing = set(truth.get("loops", [])) - known
    if missing and not any(recording.get("incomplete") for recording in recordings):
        yield "%d of %d loops are not in the report, and it does not say so" % (len(missing), len(truth["loops"]))


def judge_counted(truth, recordings):
    """Every poll is in the counts, and the report says that not all are listed."""
    if "polls_counted" not in truth:
        return
    missing = {one["what"] for recording in recordings for one in recording["incomplete"]}
    told = sum(row["polls"]["count"] for recording in recordings for row in recording["workers"] if row["polls"])
    if told != truth["polls_counted"] and "events_lost" not in missing:
        yield "%d polls in the report, %d in truth" % (told, truth["polls_counted"])
    if "polls_not_listed" not in missing:
        yield "the report does not say that short polls are not listed"


def judge_functions(truth, recordings):
    """Each function's share of the samples' weight is that of its CPU time, within what chance does."""
    true = truth.get("functions", {})
    rows = [row for recording in recordings for row in (recording["cpu"] or {}).get("functions", []) if row["function"] in true]
    n, weight = sum(row["total_samples"] for row in rows), sum(row["total_ns"] for row in rows)
    for name in true:
        told = sum(row["total_ns"] for row in rows if row["function"] == name)
        share, exact = told / weight if weight else 0, true[name] / sum(true.values())
        if n == 0 or abs(share - exact) > SIGMAS * math.sqrt(exact * (1 - exact) / n) + SHARE:
            yield "%s has %.0f %% of %d samples by weight, and %.0f %% of the CPU time" % (name, 100 * share, n, 100 * exact)


def judge_sampled(truth, recordings):
    """The samples together are the CPU time of the process, or the report says what is missing."""
    if "sampled_cpu" not in truth:
        return
    exact, cpus = truth["sampled_cpu"], [recording["cpu"] for recording in recordings if recording["cpu"]]
    told, n = sum(cpu["cpu_ns"] for cpu in cpus), sum(cpu["samples"] for cpu in cpus)
    missing = sum(recording.get("cpu_not_sampled_ns") or 0 for recording in recordings)
    expected = exact / max([cpu["period_ns"] for cpu in cpus] or [1e7])
    off = SIGMAS / math.sqrt(max(expected, 1)) / 2
    if truth.get("by_chance"):  # each sample is of another thread, and it does not do to say what is missing
        missing = 0
        off = SIGMAS / math.sqrt(max(min(expected, n), 25))
    if abs(told + missing - exact) > (0.05 + off) * exact:
        yield "%d samples stand for %s of CPU time, %s are said to be missing; it was %s" % (n, ms(told), ms(missing), ms(exact))


def judge_threads(truth, recordings):
    """The table of time off the CPU has all of it, or a part and says so; never more."""
    for key in [key for key in truth if key.startswith("thread")]:
        true = truth[key]
        exact = true["blocked"] + true["preempted"]
        for table in [recording["off_cpu"] for recording in recordings if recording["off_cpu"]]:
            told = sum(row["blocked_ns"] + row["preempted_ns"] for row in table["threads"] if row["tid"] == true["tid"])
            share = table.get("recorded_share", 1)
            if told > exact + tolerance(exact) or (share > 0.98 and told < exact - tolerance(exact)):
                yield "thread %s: %s off the CPU in the table, which is of %.1f %% of the time; in truth %s" % (
                    key[6:], ms(told), 100 * share, ms(exact))


def judge_holders(truth, recordings):
    """Who held the lock for most of the wait, and for how long."""
    for true in truth.get("holders", []):
        causes = [cause for poll, _ in all_polls(recordings) if poll["tid"] == truth["polls"][0]["tid"]
                  for cause in poll["breakdown"]["causes"] if cause["kind"] in ("lock", "read-write lock")]
        held = [cause["holder"] for cause in causes if cause["holder"]]
        if not causes:
            yield "no poll waits for a lock"
        elif not held or held[0]["tid"] != true["tid"]:
            yield "held by thread %s, in truth by %d" % (held[0]["tid"] if held else "not known", true["tid"])
        elif true.get("held") and abs((held[0].get("held_ns") or 0) - true["held"]) > 0.05 * true["held"] + 1_000_000:
            yield "held for %s, in truth for %s" % (ms(held[0].get("held_ns") or 0), ms(true["held"]))
        if causes and causes[0].get("object_name") != true["lock"]:
            yield "the lock is called %s, in truth %s" % (causes[0].get("object_name"), true["lock"])


def judge_unseen(_, recordings):
    """A loop that is recorded is not said to be unseen."""
    for recording in recordings:
        note = recording["facts"].get("degraded.loops") or ""
        if "an epoll descriptor" in note and recording["longest_polls"]:
            yield "it has ticks of a loop, and says: " + note


def judge_descriptors(truth, recordings):
    """What it was that a long call waited for."""
    for name, words in truth.get("descriptors", {}).items():
        told = {cause.get("descriptor") for poll, _ in all_polls(recordings) for cause in poll["breakdown"]["causes"]
                if cause["name"] == name and cause["total_ns"] > 2_000_000}
        if any(words not in (one or "") for one in told):
            yield "%s waited for %s, in truth for a %s" % (name, told, words)


def judge_throttled(truth, recordings):
    """What the CPU quota took, by the kernel's own count."""
    if "throttled" in truth:
        told = sum((recording.get("cpu_quota") or {}).get("throttled_ns") or 0 for recording in recordings)
        begin = truth["polls"][0]["begin"]
        polls = sum(poll["breakdown"].get("throttled_ns") or 0 for poll, _ in all_polls(recordings)
                    if poll["begin_mono_ns"] + poll["duration_ns"] > begin)
        # The recording may have begun before the first poll. The group's count is a sum over CPUs: where weft's own
        # threads are kept from the other CPU, it has more than the polls were kept from theirs.
        group = truth["throttled"]
        most = min(group, sum(poll["preempted"] for poll in truth["polls"]))
        for what, ns, least, most in (("process", told, group, group + truth["throttled_before"]), ("polls", polls, most, most)):
            if not 0.9 * least - 50_000_000 <= ns <= 1.1 * most + 50_000_000:
                yield "throttled by the report: the %s for %s, in truth %s to %s" % (what, ms(ns), ms(least), ms(most))


def judge(truth, recordings):
    wrong, (error, of), unusable = judge_polls(truth, recordings)
    for check in judge_waits, judge_no_polls, judge_loops, judge_counted, judge_functions, judge_sampled, judge_threads, judge_holders, \
            judge_descriptors, judge_throttled, judge_unseen:
        wrong += check(truth, recordings)
    return Result(wrong, error, of, len(truth["polls"]), None if wrong else unusable)


def falsify(truth):
    """Of each poll a part that is more than the tolerance goes from the largest part to another."""
    polls = []
    for poll in truth["polls"]:
        most = max(PARTS, key=lambda name: poll[name])
        other = next(name for name in PARTS if name != most)
        wrong_ns = int(0.1 * poll[most]) + 10 * LEAST_NS
        polls.append({**poll, most: max(0, poll[most] - wrong_ns), other: poll[other] + wrong_ns})
    return {**truth, "polls": polls}
