# SPDX-License-Identifier: Apache-2.0
"""Compares a program's truth with the recordings of a report."""
import collections

PARTS = ("on_cpu", "blocked", "waiting", "preempted")
SHARE = 0.02         # of a part's truth that it may be wrong by,
LEAST_NS = 50_000    # or so much, whichever is more
OUTSIDE_NS = 200_000 # of a poll that may lie outside the program's own readings, or 1 %: with more the run says nothing
OPEN_NS = 500_000    # of CPU time of a poll that never ends after the program's last reading: it prints
SLACK_NS = 20_000    # between the program's clock and the trace's

# wrong: what is, in words. error: the worst of all parts, in percent of the truth (of 2.5 ms where that is more, so that 2 is the
# tolerance). of: which part that is. unusable: why nothing can be said, or None.
Result = collections.namedtuple("Result", "wrong error of unusable")


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


def part(story, name):
    value = story.get(name + "_ns") or 0
    if name == "preempted":
        value += story.get("throttled_ns") or 0
    return value


def judge_poll(true, poll, index):
    """(words or None, error, of) for each part."""
    story = poll["story"]
    wall = true["end"] - true["begin"]
    where = "%s #%d" % (true["name"], index)
    outside = max(0, poll["duration_ns"] - wall) if not true["open"] else 0
    missing = part(story, "not_measured")
    for name in PARTS:
        told, exact = part(story, name), true[name]
        # Of a poll that is still open the program knows its CPU time and not how long the report sees it.
        high = told - exact - outside
        low = exact - told - missing
        if true["open"]:
            high = high - OPEN_NS if name == "on_cpu" else 0
            low = 0
        off = max(0, high, low)
        limit = tolerance(exact)
        words = None
        if off > limit:
            words = "%s, %s: %s in the report, %s in truth (of %s; %s not measured)" % (
                where, name.replace("_", " "), ms(told), ms(exact), ms(poll["duration_ns"]), ms(missing))
        yield words, 100 * SHARE * off / limit, "%s, %s" % (where, name.replace("_", " "))
    if missing > tolerance(wall) and not true["unmeasured"] and not true["open"]:
        yield "%s: %s of %s not measured (%s)" % (where, ms(missing), ms(poll["duration_ns"]), story.get("not_measured_why")), \
            100 * SHARE * missing / tolerance(wall), where + ", not measured"
    total = sum(part(story, name) for name in PARTS) + missing
    if abs(total - poll["duration_ns"]) > tolerance(poll["duration_ns"]):
        yield "%s: the parts are %s and the poll %s" % (where, ms(total), ms(poll["duration_ns"])), None, ""


def judge_polls(truth, recordings):
    numbers, worst, wrong, unusable = collections.Counter(), (None, ""), [], None
    for true in truth["polls"]:
        index = numbers[true["name"]]
        numbers[true["name"]] += 1
        poll = find(true, recordings)
        if poll is None:
            wrong.append("%s #%d of %s: no such poll in the report" % (true["name"], index, ms(true["end"] - true["begin"])))
            continue
        outside = poll["duration_ns"] - (true["end"] - true["begin"])
        if not true["open"] and outside > max(OUTSIDE_NS, 0.01 * (true["end"] - true["begin"])):
            unusable = unusable or "%s #%d: the poll is %s, by the program's own clock %s" % (
                true["name"], index, ms(poll["duration_ns"]), ms(true["end"] - true["begin"]))
            continue
        for words, error, of in judge_poll(true, poll, index):
            if words:
                wrong.append(words)
            if error is not None and (worst[0] is None or error > worst[0]):
                worst = error, of
    return wrong, worst, unusable


def judge_waits(truth, recordings):
    """Calls that only computed are no waits; what waited is one, with its name."""
    waits = [wait for recording in recordings for wait in recording["waits"]]
    off = sum(poll[name] for poll in truth["polls"] for name in PARTS[1:])
    for name in truth.get("no_waits", []):
        total = sum(wait["total_ns"] for wait in waits if wait["name"] == name)
        if total > off + tolerance(off):
            yield "%s is among the waits with %s; the program was off the CPU for %s" % (name, ms(total), ms(off))
    for name in truth.get("waits", []):
        if not any(wait["name"] == name for wait in waits):
            yield "%s is not among the waits" % name


def judge_no_polls(truth, recordings):
    """Times of a thread that are in no poll, not even in one that still runs."""
    for no in truth.get("no_polls", []):
        for poll, running in all_polls(recordings):
            begin, end = poll["begin_mono_ns"], poll["begin_mono_ns"] + poll["duration_ns"]
            shared = min(end, no["end"]) - max(begin, no["begin"])
            if poll["tid"] == no["tid"] and shared > tolerance(no["end"] - no["begin"]):
                yield "%s of %s after the loop are in a poll%s" % (ms(shared), ms(no["end"] - no["begin"]),
                                                                   " that still runs" if running else "")


def judge(truth, recordings):
    wrong, (error, of), unusable = judge_polls(truth, recordings)
    wrong += judge_waits(truth, recordings)
    wrong += judge_no_polls(truth, recordings)
    return Result(wrong, error, of, None if wrong else unusable)


def falsify(truth):
    """Of each poll a part that is more than the tolerance goes from the largest part to another."""
    polls = []
    for poll in truth["polls"]:
        most = max(PARTS, key=lambda name: poll[name])
        other = next(name for name in PARTS if name != most)
        wrong_ns = int(0.1 * poll[most]) + 10 * LEAST_NS
        polls.append({**poll, most: max(0, poll[most] - wrong_ns), other: poll[other] + wrong_ns})
    return {**truth, "polls": polls}
