// SPDX-License-Identifier: Apache-2.0
// What the trace says it does not have: losses, and polls and parks that were counted, not recorded one by one.
import type { Trace } from '../../api';
import { many } from '../table';
import type { Counted } from './draw';
import type { Loss } from './head';

export async function readLosses(trace: Trace): Promise<Loss[]> {
  const rows = await many(trace, 'loss', ['rowid', 'thread_id', 'from_ns', 'to_ns', 'reason'], [], 5000);
  return rows.map((r) => ({
    rowid: r.num('rowid'),
    threadId: r.num('thread_id') > 0 ? r.num('thread_id') : -1,
    fromNs: r.num('from_ns'),
    toNs: r.num('to_ns'),
    reason: r.str('reason'),
  }));
}

export interface Count {
  thread: number;
  at: number;
  n: number;
}
export interface Parks {
  thread: number;
  at: number;
  spanNs: number;
  parkedNs: number;
}

/** Counts of polls by thread, each with the parks of the same time; a count is of the time since the one before. */
export function countedBy(counts: Count[], parks: Parks[]): Map<number, Counted[]> {
  const out = new Map<number, Counted[]>();
  const of = (thread: number): Counted[] => {
    let list = out.get(thread);
    if (!list) out.set(thread, (list = []));
    return list;
  };
  for (const { thread, at, n } of counts) {
    const list = of(thread);
    const last = list[list.length - 1];
    if (last?.toNs === at) {
      last.polls += n;
      continue;
    }
    const park = parks.find((p) => p.thread === thread && p.at === at);
    const fromNs = last ? last.toNs : park ? at - park.spanNs : at;
    list.push({ fromNs, toNs: at, polls: n, parkedNs: park ? park.parkedNs : NaN });
  }
  return out;
}

export async function readCounted(trace: Trace): Promise<Map<number, Counted[]>> {
  const [counts, parks] = await Promise.all([
    many(trace, 'poll_count', ['thread_id', 'time_ns', 'count'], [], 1_000_000),
    many(trace, 'park_count', ['thread_id', 'time_ns', 'span_ns', 'parked_ns'], [], 100_000),
  ]);
  return countedBy(
    counts.map((r) => ({ thread: r.num('thread_id'), at: r.num('time_ns'), n: r.num('count') })),
    parks.map((r) => ({
      thread: r.num('thread_id'),
      at: r.num('time_ns'),
      spanNs: r.num('span_ns'),
      parkedNs: r.num('parked_ns'),
    })),
  );
}
