// SPDX-License-Identifier: Apache-2.0
// The first page of weft report, and where each of its lines leads.
import { go, panel, reveal } from '../actions';
import type { App } from '../context';
import { useApp, useLoaded } from '../context';
import { clock, count, day, duration, plural } from '../format';
import { many } from '../table';
import { Empty, Legend } from './common';
import type { TimeRange } from '../../api';
import { areApart } from '../apart';
import { encodePart } from '../url';

/** As findings of weft report --json; what is not measured is null. */
export interface Finding {
  kind: string;
  cause: string | null;
  title: string;
  location?: string | null;
  count: number;
  count_is_at_least: boolean;
  total_ns: number;
  longest_ns: number | null;
  longest_at_ns: number | null;
  longest: string | null;
  who: string | null;
  behind: { polls: number; total_ns: number; longest_ns: number; of: string | null } | null;
  query: string | null;
}

const CAUSES: Record<string, number> = { on_cpu: 0, blocked: 1, waiting: 2, preempted: 3, not_measured: 4 };

async function jump(app: App, f: Finding): Promise<void> {
  if (f.longest_at_ns === null)
    return panel(app, f.cause === 'on_cpu' || f.cause === null ? 'flame' : f.kind === 'lock' ? 'locks' : 'waits');
  const polls = ['poll', 'tick', 'running', 'delay'].includes(f.kind);
  const table = polls ? 'poll' : 'wait';
  // The moment in the report is rounded as text is, so the longest that begins near it is the one.
  const at = f.longest_at_ns;
  const near = (filters: { column: string; op: '>=' | '<='; value: number }[]) =>
    many(app.trace, table, ['rowid', 'location'], filters, 20, {
      column: f.kind === 'delay' ? 'wake_delay_ns' : 'duration_ns',
      descending: true,
    });
  const rows = await near([
    { column: 'begin_ns', op: '>=', value: at - 1000 },
    { column: 'begin_ns', op: '<=', value: at + 1000 },
  ]);
  const best = rows.find((r) => !f.location || !r.has('location') || r.str('location') === f.location) ?? rows[0];
  if (best) await go(app, table, best.num('rowid'));
  else reveal(app, at, at + (f.longest_ns ?? 1e6));
}

function FindingItem({ finding: f, index }: { finding: Finding; index: number }) {
  const app = useApp();
  const part = CAUSES[f.cause ?? ''] ?? 4;
  const times = f.count === 1 ? 'once' : `${f.count_is_at_least ? 'at least ' : ''}${count(f.count)} times`;
  return (
    <li>
      <button class="finding" data-testid="finding" onClick={() => void jump(app, f)}>
        <span class={`rank part-${part}`}>{index + 1}</span>
        <span class="finding-text">
          <span class="finding-title">{f.title}</span>
          <span class="finding-line">
            {times}, {duration(f.total_ns)} in all
            {f.longest_ns !== null && f.count !== 1 && <>, the longest {duration(f.longest_ns)}</>}
            {f.longest && <>: {f.longest}</>}
            {f.who && <>; on {f.who}</>}
          </span>
          {f.behind && (
            <span class="finding-line">
              behind {f.count === 1 ? 'it' : 'them'} waited {plural(f.behind.polls, 'poll')},{' '}
              {duration(f.behind.total_ns)} in all, up to {duration(f.behind.longest_ns)} each
            </span>
          )}
        </span>
      </button>
    </li>
  );
}

function Sentences({ title, list, kind }: { title: string; list: string[]; kind: string }) {
  if (!list.length) return null;
  return (
    <section class="block tight">
      {title && <h3>{title}</h3>}
      <ul class={`sentences ${kind}`}>
        {list.map((text, i) => (
          <li key={i}>{text}</li>
        ))}
      </ul>
    </section>
  );
}

export function missing(app: App): string[] {
  const { info } = app.loaded.get();
  const out: string[] = [];
  const has = (layer: 'poll' | 'flame'): boolean =>
    info.lanes.some((lane) => app.trace.slices(lane.id, layer, info.fromNs, info.toNs, 4).n > 0);
  if (!info.lanes.length) return ['No thread recorded anything.'];
  if (areApart(info)) out.push('The recordings are far apart: choose one above the lists to look at its time.');
  if (!info.lanes.some((lane) => lane.workerId >= 0))
    out.push('No thread was a worker of a runtime: there are no polls, only what threads did.');
  else if (!has('poll')) out.push('No poll was recorded one by one.');
  if (!has('flame')) out.push('There are no CPU samples: the flame graph is empty.');
  return out;
}

/** Of a trace that is too large for a browser: the way to the parts that are not loaded. */
function OtherParts() {
  const { before, after } = useLoaded((l) => l.info);
  if (!before && !after) return null;
  const load = (part: TimeRange): void => {
    location.hash = encodePart(part); // the page follows it
  };
  return (
    <p class="parts">
      {before && <button onClick={() => load(before)}>← Load what is before it</button>}
      {after && <button onClick={() => load(after)}>Load what is after it →</button>}
    </p>
  );
}

export function Findings() {
  const app = useApp();
  const info = useLoaded((l) => l.info);
  const findings = info.findings as Finding[];
  const workers = info.lanes.filter((lane) => lane.workerId >= 0).length;
  const ticks = workers > 0 && info.lanes.every((lane) => lane.workerId < 0 || /^loop\//.test(lane.name));
  return (
    <article data-testid="findings">
      <h2>What matters most</h2>
      <p class="lead">
        {duration(info.toNs - info.fromNs)}, {count(info.events)} events
        {workers > 0 && `, ${plural(workers, ticks ? 'event loop' : 'worker')}`},{' '}
        {plural(info.lanes.length - workers, workers ? 'other thread' : 'thread')}
        {info.startUnixNs > 0 && (
          <>
            {' '}
            from {day(info.startUnixNs)} {clock(0, info.startUnixNs, 1e9)} UTC
          </>
        )}
        {info.live && <em> and still recording</em>}
      </p>
      {info.lanes.length > 0 && <Legend />}
      <Sentences title="What is not here" list={info.problems} kind="problem" />
      <OtherParts />
      <Sentences title="" list={[...info.limits, ...missing(app)]} kind="limit" />
      {info.complete === false && <p class="muted">Looking for what matters in {count(info.events)} events…</p>}
      {findings.length === 0 && info.complete !== false && (
        <Empty>weft report finds nothing that stands out: no long polls, no long waits, no late wakes.</Empty>
      )}
      <ol class="findings">
        {findings.map((finding, i) => (
          <FindingItem key={i} finding={finding} index={i} />
        ))}
      </ol>
      <p class="muted hint">
        Press {workers > 0 && (
          <>
            <kbd>n</kbd> for the next long poll,{' '}
          </>
        )}
        <kbd>?</kbd> for all keys.
      </p>
    </article>
  );
}
