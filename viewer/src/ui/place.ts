// SPDX-License-Identifier: Apache-2.0
// Where an item is on the timeline, and the arrows that lead from and to it.
import { lockName } from './format';
import type { App, Arrow, Place } from './context';
import type { Item } from './state';
import { duration } from './format';
import { many, one, timesOf } from './table';
import type { Row } from './table';

export interface Holder {
  wait: Row; // the wait that this is about
  name: string; // what was waited for
  holder: string;
  threadId: number;
  heldNs: number;
  doing: string;
}

export interface PollInfo {
  poll: Row;
  slices: Row[];
  waits: Row[];
  chain: Holder[];
  delayed: Row[];
  behind: Row | null;
  waker: Row | null; // the poll that woke it
}

export function endOf(app: App, row: Row, table: string): number {
  const [begin, end] = timesOf(table);
  const to = row.num(end);
  if (!Number.isNaN(to)) return to;
  const long = row.num('duration_ns');
  return Number.isNaN(long) ? app.loaded.get().info.toNs : row.num(begin) + long;
}

/** A lock by what it is called where that is known, else by the call that waits for it. */
export function waitedFor(row: Row): string {
  return lockName(row.str('object_name'), row.str('name'));
}

/** Who held what a wait waited for, whom that one waited for in turn, and so on; a ring of waits ends it. */
export async function holders(app: App, wait: Row): Promise<Holder[]> {
  const chain: Holder[] = [];
  const seen = new Set<number>();
  let at: Row | undefined = wait;
  while (at && at.has('holder') && chain.length < 8) {
    const threadId = at.num('holder_thread_id');
    chain.push({
      wait: at,
      name: waitedFor(at) || at.str('object') || at.str('kind'),
      holder: at.str('holder'),
      threadId,
      heldNs: at.num('held_ns'),
      doing: at.str('holder_function'),
    });
    if (Number.isNaN(threadId) || seen.has(threadId)) break;
    seen.add(threadId);
    const during: Row[] = await many(
      app.trace,
      'wait',
      undefined,
      [
        { column: 'thread_id', op: '=', value: threadId },
        { column: 'begin_ns', op: '<', value: at.num('end_ns') },
        { column: 'end_ns', op: '>', value: at.num('begin_ns') },
      ],
      1,
      { column: 'duration_ns', descending: true },
    );
    const next: Row | undefined = during[0];
    if (next && !chain[chain.length - 1].doing) chain[chain.length - 1].doing = waitedFor(next);
    at = next;
  }
  return chain;
}

async function wakerOf(app: App, poll: Row): Promise<Row | null> {
  const [thread, at] = [poll.num('waker_thread_id'), poll.num('wake_ns')];
  if (Number.isNaN(thread) || Number.isNaN(at) || !poll.has('waker_task')) return null;
  const found = await many(
    app.trace,
    'poll',
    ['rowid', 'id', 'thread_id', 'begin_ns', 'end_ns', 'duration_ns', 'location', 'task', 'worker'],
    [
      { column: 'thread_id', op: '=', value: thread },
      { column: 'begin_ns', op: '<=', value: at },
      { column: 'end_ns', op: '>=', value: at },
    ],
    1,
    { column: 'begin_ns', descending: true },
  );
  return found[0] ?? null;
}

const BRIEF = ['rowid', 'id', 'thread_id', 'worker', 'begin_ns', 'end_ns', 'duration_ns', 'location', 'task'];
const known = new Map<string, Promise<PollInfo | null>>();

export function loadPoll(app: App, rowid: number): Promise<PollInfo | null> {
  const key = `${rowid}/${app.loaded.get().info.events}`;
  let found = known.get(key);
  if (!found) {
    if (known.size > 50) known.clear();
    found = readPoll(app, rowid);
    known.set(key, found);
  }
  return found;
}

async function readPoll(app: App, rowid: number): Promise<PollInfo | null> {
  const { trace } = app;
  const poll = await one(trace, 'poll', [{ column: 'rowid', op: '=', value: rowid }]);
  if (!poll) return null;
  const id = poll.num('id');
  const [from, to] = [poll.num('begin_ns'), endOf(app, poll, 'poll')];
  const behindId = poll.num('behind_poll_id');
  const during = [
    { column: 'thread_id', op: '=' as const, value: poll.num('thread_id') },
    { column: 'begin_ns', op: '<=' as const, value: to },
    { column: 'end_ns', op: '>=' as const, value: from },
  ];
  const byLength = { column: 'duration_ns', descending: true };
  const [slices, waits, delayed, behind, waker] = await Promise.all([
    many(trace, 'slice', undefined, [{ column: 'poll_id', op: '=', value: id }], 1000, byLength),
    many(trace, 'wait', undefined, during, 50, byLength),
    many(
      trace,
      'poll',
      [...BRIEF, 'wake_delay_ns', 'behind_ns'],
      [{ column: 'behind_poll_id', op: '=', value: id }],
      200,
      {
        column: 'behind_ns',
        descending: true,
      },
    ),
    Number.isNaN(behindId) ? null : one(trace, 'poll', [{ column: 'id', op: '=', value: behindId }], BRIEF),
    wakerOf(app, poll),
  ]);
  const held = waits.find((w) => w.has('holder'));
  return { poll, slices, waits, delayed, behind, waker, chain: held ? await holders(app, held) : [] };
}

export function pollArrows(app: App, info: PollInfo): Arrow[] {
  const { poll } = info;
  const me = poll.num('thread_id');
  const arrows: Arrow[] = [];
  const wokeAt = poll.num('wake_ns');
  if (!Number.isNaN(wokeAt) && poll.has('waker_thread_id'))
    arrows.push({
      kind: 'wake',
      fromThread: poll.num('waker_thread_id'),
      fromNs: wokeAt,
      toThread: me,
      toNs: poll.num('begin_ns'),
      label: `woken by ${poll.str('waker_location') || poll.str('waker_worker')}`,
    });
  if (info.behind)
    arrows.push({
      kind: 'behind',
      fromThread: info.behind.num('thread_id'),
      fromNs: endOf(app, info.behind, 'poll'),
      toThread: me,
      toNs: poll.num('begin_ns'),
      label: `behind ${info.behind.str('location')} for ${duration(poll.num('behind_ns'))}`,
    });
  for (const late of info.delayed.slice(0, 30))
    arrows.push({
      kind: 'delayed',
      fromThread: me,
      fromNs: endOf(app, poll, 'poll'),
      toThread: late.num('thread_id'),
      toNs: late.num('begin_ns'),
      label: late.str('location'),
    });
  return [...arrows, ...holderArrows(info.chain)];
}

export function holderArrows(chain: Holder[]): Arrow[] {
  return chain.flatMap((h): Arrow[] => {
    if (Number.isNaN(h.threadId) || !h.wait.has('thread_id')) return [];
    return [
      {
        kind: 'holder',
        fromThread: h.threadId,
        fromNs: h.wait.num('begin_ns'),
        toThread: h.wait.num('thread_id'),
        toNs: h.wait.num('end_ns'),
        label: `${h.holder} held ${h.name}`,
      },
    ];
  });
}

const LAYERS: Record<string, string> = { sample: 'flame', slice: 'poll', stuck: 'poll', loss: 'poll', park: 'poll' };

async function taskPlace(app: App, item: Item & { kind: 'task' }): Promise<Place | null> {
  const polls = await many(
    app.trace,
    'poll',
    [...BRIEF, 'wake_ns', 'waker_thread_id'],
    [
      { column: 'task', op: '=', value: item.task },
      { column: 'recording', op: '=', value: item.recording },
    ],
    2000,
  );
  if (!polls.length) return null;
  const arrows = polls.slice(0, 60).flatMap((p): Arrow[] => {
    if (Number.isNaN(p.num('wake_ns')) || Number.isNaN(p.num('waker_thread_id'))) return [];
    const toNs = p.num('begin_ns');
    return [
      {
        kind: 'delayed',
        fromThread: p.num('waker_thread_id'),
        fromNs: p.num('wake_ns'),
        toThread: p.num('thread_id'),
        toNs,
        label: '',
      },
    ];
  });
  return {
    item,
    threadId: polls.length === 1 ? polls[0].num('thread_id') : -1,
    layer: 'poll',
    fromNs: Math.min(...polls.map((p) => p.num('begin_ns'))),
    toNs: Math.max(...polls.map((p) => endOf(app, p, 'poll'))),
    arrows,
  };
}

async function spanPlace(app: App, item: Item & { kind: 'span' }): Promise<Place | null> {
  const polls = await many(app.trace, 'poll', BRIEF, [{ column: 'span', op: '=', value: item.span }], 2000);
  const waits = await many(
    app.trace,
    'wait',
    ['begin_ns', 'end_ns'],
    [{ column: 'span', op: '=', value: item.span }],
    2000,
  );
  const contexts = await many(
    app.trace,
    'context',
    ['time_ns'],
    [{ column: 'span', op: '=', value: item.span }],
    2000,
  );
  const times = [
    ...polls.flatMap((p) => [p.num('begin_ns'), endOf(app, p, 'poll')]),
    ...waits.flatMap((w) => [w.num('begin_ns'), w.num('end_ns')]),
    ...contexts.map((c) => c.num('time_ns')),
  ];
  if (!times.length) return null;
  return { item, threadId: -1, layer: 'poll', fromNs: Math.min(...times), toNs: Math.max(...times), arrows: [] };
}

export async function placeOf(app: App, item: Item): Promise<Place | null> {
  if (item.kind === 'task') return taskPlace(app, item);
  if (item.kind === 'span') return spanPlace(app, item);
  const { table, rowid } = item;
  if (table === 'poll') {
    const info = await loadPoll(app, rowid);
    if (!info) return null;
    const { poll } = info;
    const [fromNs, toNs] = [poll.num('begin_ns'), endOf(app, poll, 'poll')];
    return { item, threadId: poll.num('thread_id'), layer: 'poll', fromNs, toNs, arrows: pollArrows(app, info) };
  }
  const row = await one(app.trace, table, [{ column: 'rowid', op: '=', value: rowid }]);
  if (!row) return null;
  const arrows = table === 'wait' ? holderArrows(await holders(app, row)) : [];
  let fromNs = row.num(timesOf(table)[0]);
  if (table === 'sample') fromNs -= row.num('weight_ns') || 0;
  const threadId = row.has('thread_id') ? row.num('thread_id') : -1;
  return { item, threadId, layer: LAYERS[table] ?? table, fromNs, toNs: endOf(app, row, table), arrows };
}
