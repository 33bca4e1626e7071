// SPDX-License-Identifier: Apache-2.0
// All of one task, and all that carries one span.
import { panel, select } from '../actions';
import type { App } from '../context';
import { useApp, useAsync } from '../context';
import { count, duration } from '../format';
import { waitedFor } from '../place';
import { many } from '../table';
import type { Row } from '../table';
import { Empty, Fact, Labels, Moment, RowLink, Section } from './common';
import { Inside } from './poll';

const POLL = [
  'rowid',
  'begin_ns',
  'duration_ns',
  'location',
  'worker',
  'thread',
  'wake_delay_ns',
  'waker_location',
  'task',
];
const MOST = 200;

function PollTable({ rows }: { rows: Row[] }) {
  if (!rows.length) return <Empty>No poll of it was recorded one by one.</Empty>;
  return (
    <table class="plain">
      <thead>
        <tr>
          <th>at</th>
          <th>location</th>
          <th class="num">length</th>
          <th class="num">delay</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((r) => (
          <tr key={r.num('rowid')}>
            <td>
              <Moment ns={r.num('begin_ns')} toNs={r.num('begin_ns') + r.num('duration_ns')} />
            </td>
            <td>
              <RowLink table="poll" rowid={r.num('rowid')}>
                {r.str('location')}
              </RowLink>{' '}
              <span class="muted">{r.str('worker') || r.str('thread')}</span>
            </td>
            <td class="num">{duration(r.num('duration_ns'))}</td>
            <td class="num muted">{r.has('wake_delay_ns') ? duration(r.num('wake_delay_ns')) : ''}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

async function loadTask(app: App, recording: number, task: number) {
  const filters = [
    { column: 'task', op: '=' as const, value: task },
    { column: 'recording', op: '=' as const, value: recording },
  ];
  const byTime = { column: 'begin_ns', descending: false };
  const [tasks, polls, wakes] = await Promise.all([
    many(app.trace, 'task', undefined, filters, 20),
    many(app.trace, 'poll', POLL, filters, MOST, byTime),
    many(
      app.trace,
      'wake',
      ['time_ns', 'from_location', 'worker', 'thread', 'delay_ns', 'poll_id'],
      [{ column: 'to_task', op: '=', value: task }, filters[1]],
      MOST,
    ),
  ]);
  return { tasks: withFacts(tasks), polls, wakes };
}

/** Without those of which nothing is known but that they were polled: where polls are only counted, that is little. */
function withFacts(tasks: Row[]): Row[] {
  const known = tasks.filter((t) => ['spawn_ns', 'end_ns', 'polls', 'wakes'].some((column) => t.has(column)));
  return known.length ? known : tasks;
}

function whereNow(task: Row | undefined, polls: Row[]): string {
  if (!task) return 'Its spawn and end were not recorded.';
  if (task.has('end_ns')) return 'It has ended.';
  const last = polls[polls.length - 1];
  if (!last) return 'It had not ended as the recording did.';
  const where = last.str('location');
  return `It had not ended as the recording did: since its last poll, of ${where}, it waits to be woken.`;
}

export function TaskPanel({ recording, task }: { recording: number; task: number }) {
  const app = useApp();
  const { value, loading } = useAsync(() => loadTask(app, recording, task), [recording, task]);
  if (!value) return loading ? <p class="muted">…</p> : <Empty>This task is not in the trace.</Empty>;
  const { tasks, polls, wakes } = value;
  const wakers = new Map<string, number>();
  for (const w of wakes) {
    const who = w.str('from_location') || w.str('worker') || w.str('thread') || 'not known';
    wakers.set(who, (wakers.get(who) ?? 0) + 1);
  }
  return (
    <article data-testid="task-panel">
      <h2>Task {task}</h2>
      <p class="lead">{tasks[0]?.str('location') || polls[0]?.str('location')}</p>
      <p>{whereNow(tasks[tasks.length - 1], polls)}</p>
      {tasks.map((t, i) => (
        <dl key={i}>
          <Fact name="spawned">
            <Moment ns={t.num('spawn_ns')} />
          </Fact>
          <Fact name="ended">
            <Moment ns={t.num('end_ns')} />
          </Fact>
          <Fact name="polls">{t.has('polls') ? count(t.num('polls')) : 'not every poll is recorded'}</Fact>
          <Fact name="wakes">{t.has('wakes') ? count(t.num('wakes')) : 'only counted at times'}</Fact>
        </dl>
      ))}
      <Section title="Woken by">
        {wakers.size === 0 && <Empty>No wake of it was recorded.</Empty>}
        {[...wakers].map(([who, n]) => (
          <p key={who}>
            {who}: {count(n)} {n === 1 ? 'time' : 'times'}
          </p>
        ))}
      </Section>
      <Section title="Polls" note={polls.length === MOST ? `the first ${MOST}` : count(polls.length)}>
        <PollTable rows={polls} />
      </Section>
      <p class="buttons">
        <button
          onClick={() => {
            select(app, { task, recording });
            panel(app, 'flame');
          }}
        >
          Flame graph of this task
        </button>
      </p>
    </article>
  );
}

async function loadSpan(app: App, span: string) {
  const filters = [{ column: 'span', op: '=' as const, value: span }];
  const [polls, waits] = await Promise.all([
    many(app.trace, 'poll', POLL, filters, MOST, { column: 'begin_ns', descending: false }),
    many(app.trace, 'wait', undefined, filters, MOST, { column: 'begin_ns', descending: false }),
  ]);
  const contexts = await many(app.trace, 'context', undefined, filters, MOST);
  return { polls, waits, contexts, flame: await app.trace.flame({ spanId: span }, 'cpu') };
}

export function SpanPanel({ span }: { span: string }) {
  const app = useApp();
  const { value, loading } = useAsync(() => loadSpan(app, span), [span]);
  if (!value) return loading ? <p class="muted">…</p> : <Empty>This span is not in the trace.</Empty>;
  const { polls, waits, contexts, flame } = value;
  const some = contexts[0] ?? waits[0];
  return (
    <article data-testid="span-panel">
      <h2>{some?.str('endpoint') || 'Request'}</h2>
      <p class="lead">
        span <span class="mono">{span}</span>
      </p>
      {some && (
        <dl>
          {some.has('root_span') && (
            <Fact name="local root">
              <span class="mono">{some.str('root_span')}</span>
            </Fact>
          )}
          {some.has('labels') && (
          <Fact name="labels">
            <Labels text={some.str('labels')} />
          </Fact>
        )}
          {contexts[0] && (
            <Fact name="from">
              <Moment ns={contexts[0].num('time_ns')} />
            </Fact>
          )}
          <Fact name="on threads">
            {[...new Set(contexts.map((c) => c.str('worker') || c.str('thread')))].join(', ')}
          </Fact>
        </dl>
      )}
      <Section title="Polls" note={count(polls.length)}>
        <PollTable rows={polls} />
      </Section>
      <Section title="Waits" note={count(waits.length)}>
        {!waits.length && <Empty>No wait of it was recorded one by one.</Empty>}
        {waits.map((w) => (
          <p key={w.num('rowid')}>
            <RowLink table="wait" rowid={w.num('rowid')}>
              {waitedFor(w) || w.str('kind')}
            </RowLink>{' '}
            {duration(w.num('duration_ns'))}
            {w.has('holder') && <>, held by {w.str('holder')}</>}
          </p>
        ))}
      </Section>
      <Section title="On the CPU" note={flame.count[0] ? `${count(flame.count[0])} samples` : ''}>
        <Inside flame={flame} />
      </Section>
      <p class="buttons">
        <button
          onClick={() => {
            select(app, { spanId: span });
            panel(app, 'flame');
          }}
        >
          Flame graph of this request
        </button>
      </p>
    </article>
  );
}
