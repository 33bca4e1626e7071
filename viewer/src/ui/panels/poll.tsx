// SPDX-License-Identifier: Apache-2.0
// The panel of a poll: its length as a bar of its parts with their causes, and who is to blame for it and by it.
import type { Flame } from '../../api';
import { goMoment, openItem, panel, select } from '../actions';
import type { App } from '../context';
import { laneOf, useApp, useAsync } from '../context';
import { topFunction, topStacks } from '../flame/summary';
import { count, duration, share } from '../format';
import { loadPoll, waitedFor } from '../place';
import type { Holder, PollInfo } from '../place';
import { isTick, one } from '../table';
import type { Row } from '../table';
import { Dot, Empty, Fact, Labels, Legend, Moment, PartsBar, PollLink, RowLink, Section, TaskLink } from './common';
import type { Piece } from './common';

const PART_NAMES = ['on_cpu', 'blocked', 'waiting', 'preempted', 'not_measured'];

export interface Cause {
  part: number;
  ns: number;
  what: string;
}

function whatOf(slice: Row): string {
  const name = waitedFor(slice);
  const fd = slice.str('fd');
  const about = slice.str('about');
  if (name && fd) return `${name} fd ${fd}${about ? ` (${about})` : ''}`;
  return name || slice.str('function') || (slice.has('syscall') ? `system call ${slice.str('syscall')}` : '');
}

/** Slices of one part and cause together, the longest first. */
export function causesOf(slices: Row[], onCpuIn: string): Cause[] {
  const sums = new Map<string, Cause>();
  for (const slice of slices) {
    const part = Math.max(0, PART_NAMES.indexOf(slice.str('part')));
    const what = part === 0 ? onCpuIn : part === 3 ? '' : whatOf(slice);
    const key = `${part}/${what}`;
    const sum = sums.get(key);
    if (sum) sum.ns += slice.num('duration_ns');
    else sums.set(key, { part, ns: slice.num('duration_ns'), what });
  }
  return [...sums.values()].sort((a, b) => b.ns - a.ns);
}

function sentence(cause: Cause, chain: Holder[]): string {
  if (cause.part === 0) return cause.what ? `on CPU in ${cause.what}` : 'on CPU';
  if (cause.part === 1) return cause.what ? `blocked in ${cause.what}` : 'blocked';
  if (cause.part === 3) return 'preempted: ready, but other threads had the CPU';
  if (cause.part === 4) return 'not measured';
  const holder = chain.find((h) => h.name === cause.what);
  return `waiting for ${cause.what || 'a lock'}${holder ? `, held by ${holder.holder}` : ''}`;
}

function Breakdown({ info, flame }: { info: PollInfo; flame: Flame | null }) {
  const whole = info.poll.num('duration_ns');
  const causes = causesOf(info.slices, flame ? topFunction(flame) : '');
  const pieces: Piece[] = [...causes]
    .sort((a, b) => a.part - b.part || b.ns - a.ns)
    .map((c) => ({ part: c.part, ns: c.ns, title: sentence(c, info.chain) }));
  if (!causes.length) return <Empty>What this poll's time was spent on was not measured.</Empty>;
  const shown = causes.filter((c, i) => i < 8 && (c.ns >= whole / 1000 || i === 0));
  return (
    <>
      <p class="cause" data-testid="cause">
        <Dot part={causes[0].part} />
        {sentence(causes[0], info.chain)}
      </p>
      <PartsBar pieces={pieces} whole={whole} />
      <table class="plain">
        <tbody>
          {shown.map((c, i) => (
            <tr key={i}>
              <td>
                <Dot part={c.part} />
                {sentence(c, info.chain)}
              </td>
              <td class="num">{duration(c.ns)}</td>
              <td class="num muted">{share(c.ns, whole)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

export function Chain({ chain }: { chain: Holder[] }) {
  const app = useApp();
  if (!chain.length) return null;
  return (
    <Section title="Held by">
      <ol class="chain">
        {chain.map((h, i) => (
          <li key={i} data-testid="holder">
            <RowLink table="wait" rowid={h.wait.num('rowid')}>
              {h.name}
            </RowLink>{' '}
            was held by{' '}
            <button class="link" onClick={() => void goHolder(app, h)}>
              {h.holder}
            </button>{' '}
            for {duration(h.heldNs)}
            {h.doing && (
              <>
                , in <code>{h.doing}</code>
              </>
            )}
          </li>
        ))}
      </ol>
    </Section>
  );
}

/** To what the holder did: its poll then, else its own wait, else the moment on its lane. */
async function goHolder(app: App, holder: Holder): Promise<void> {
  const at = (holder.wait.num('begin_ns') + holder.wait.num('end_ns')) / 2;
  if (await goMoment(app, holder.threadId, at)) return;
  const lane = laneOf(app, holder.threadId);
  const found = lane && app.trace.slices(lane.id, 'wait', at - 1, at + 1, 1);
  if (found?.n) openItem(app, { kind: 'row', table: 'wait', rowid: found.row[0] });
}

function Woken({ info }: { info: PollInfo }) {
  const { poll, waker, behind } = info;
  const app = useApp();
  if (!poll.has('wake_ns')) return <Empty>No wake was recorded for this poll.</Empty>;
  const from = poll.str('waker_location');
  return (
    <>
      <p data-testid="waker">
        by{' '}
        {waker ? (
          <RowLink table="poll" rowid={waker.num('rowid')}>
            {from || 'a poll'} on {poll.str('waker_worker')}
          </RowLink>
        ) : (
          <button class="link" onClick={() => void goMoment(app, poll.num('waker_thread_id'), poll.num('wake_ns'))}>
            {poll.str('waker_worker') || 'a thread without a name'}
          </button>
        )}{' '}
        at <Moment ns={poll.num('wake_ns')} toNs={poll.num('begin_ns')} />
        {poll.has('wake_delay_ns') && <>, polled {duration(poll.num('wake_delay_ns'))} later</>}
      </p>
      {behind && (
        <p data-testid="behind">
          In between, for {duration(poll.num('behind_ns'))}, the worker ran{' '}
          <RowLink table="poll" rowid={behind.num('rowid')}>
            {behind.str('location')} ({duration(behind.num('duration_ns'))})
          </RowLink>
        </p>
      )}
    </>
  );
}

function Delayed({ info }: { info: PollInfo }) {
  const { delayed } = info;
  if (!delayed.length) return null;
  const total = delayed.reduce((sum, row) => sum + (row.num('behind_ns') || 0), 0);
  return (
    <Section title="Behind it waited" note={`${count(delayed.length)} polls, ${duration(total)} in all`}>
      <table class="plain">
        <tbody>
          {delayed.slice(0, 8).map((row) => (
            <tr key={row.num('rowid')}>
              <td>
                <PollLink id={row.num('id')}>{row.str('location')}</PollLink>
              </td>
              <td class="muted">{row.str('worker')}</td>
              <td class="num">{duration(row.num('behind_ns'))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {delayed.length > 8 && <p class="muted">and {count(delayed.length - 8)} more: list “Delays”</p>}
    </Section>
  );
}

export function Context({ row }: { row: Row }) {
  if (!row.has('span') && !row.has('endpoint') && !row.has('labels')) return null;
  return <ContextFacts row={row} />;
}

function ContextFacts({ row }: { row: Row }) {
  const app = useApp();
  const span = row.str('span');
  const { rowid, table } = { rowid: row.num('rowid'), table: row.rows.table };
  const { value: of } = useAsync(async () => {
    if (row.rows.columns.trace) return row.str('trace');
    return (await one(app.trace, table, [{ column: 'rowid', op: '=', value: rowid }], ['trace']))?.str('trace') ?? '';
  }, [rowid, table]);
  return (
    <Section title="Context">
      <dl>
        {row.has('endpoint') && <Fact name="endpoint">{row.str('endpoint')}</Fact>}
        {span && (
          <Fact name="span">
            <button class="link mono" onClick={() => openItem(app, { kind: 'span', span })}>
              {span}
            </button>
          </Fact>
        )}
        {of && (
          <Fact name="trace">
            <span class="mono">{of}</span>
          </Fact>
        )}
        {row.has('labels') && (
          <Fact name="labels">
            <Labels text={row.str('labels')} />
          </Fact>
        )}
      </dl>
    </Section>
  );
}

export function Inside({ flame }: { flame: Flame }) {
  const stacks = topStacks(flame, 3);
  if (!stacks.length) return <Empty>No CPU sample fell into it.</Empty>;
  return (
    <>
      {stacks.map((stack, i) => (
        <details key={i} open={i === 0}>
          <summary>
            <code>{stack.frames[0]?.name}</code> <span class="num muted">{duration(stack.ns)}</span>{' '}
            <span class="muted">{share(stack.ns, flame.total[0])}</span>
          </summary>
          <ol class="stack">
            {stack.frames.map((f, k) => (
              <li key={k} title={[f.module, f.file].filter(Boolean).join('\n')}>
                <code>{f.name}</code>
                {f.file && (
                  <small class="muted">
                    {' '}
                    {f.file.slice(f.file.lastIndexOf('/') + 1)}:{f.line}
                  </small>
                )}
              </li>
            ))}
          </ol>
        </details>
      ))}
    </>
  );
}

export function PollPanel({ rowid }: { rowid: number }) {
  const app = useApp();
  const { value: info, loading } = useAsync(() => loadPoll(app, rowid), [rowid]);
  const id = info?.poll.num('id');
  const { value: flame } = useAsync(
    async () =>
      id === undefined || info?.poll.num('rowid') !== rowid ? null : app.trace.flame({ pollId: id }, 'cpu'),
    [id, info],
  );
  if (!info) return loading ? <p class="muted">…</p> : <Empty>This poll is not in the trace.</Empty>;
  const { poll } = info;
  const [from, long] = [poll.num('begin_ns'), poll.num('duration_ns')];
  const running = !poll.has('end_ns');
  const tick = isTick(poll);
  return (
    <article data-testid="poll-panel" aria-busy={loading}>
      <h2>{tick ? `Tick of the ${poll.str('location')}` : poll.str('location')}</h2>
      <p class="lead">
        <b>{duration(long)}</b> on {poll.str('worker') || poll.str('thread')} at{' '}
        <Moment ns={from} toNs={from + long} />
        {running && <em> still running as the recording ended</em>}
      </p>
      <Breakdown info={info} flame={flame} />
      <Chain chain={info.chain} />
      {!(tick && !poll.has('wake_ns')) && (
        <Section title="Woken">
          <Woken info={info} />
        </Section>
      )}
      <Delayed info={info} />
      {flame && (
        <Section title="Stacks inside" note={flame.count[0] ? `${flame.count[0]} CPU samples` : ''}>
          <Inside flame={flame} />
        </Section>
      )}
      <Context row={poll} />
      <Section title="More">
        <dl>
          {!tick && (
            <Fact name="task">
              <TaskLink recording={poll.num('recording')} task={poll.num('task')} />
            </Fact>
          )}
          {poll.has('queue_depth') && <Fact name="queue at begin">{count(poll.num('queue_depth'))}</Fact>}
          {poll.has('wakes_issued') && <Fact name="wakes issued">{count(poll.num('wakes_issued'))}</Fact>}
          {poll.num('throttled_ns') > 0 && <Fact name="by CPU quota">{duration(poll.num('throttled_ns'))}</Fact>}
          <Fact name={tick ? 'tick' : 'poll'}>{poll.num('id')}</Fact>
        </dl>
        <p class="buttons">
          <button
            onClick={() => {
              select(app, { pollId: poll.num('id') });
              panel(app, 'flame');
            }}
          >
            Flame graph of it
          </button>
          {poll.has('location_id') && (
            <button
              onClick={() => {
                select(app, { locationId: poll.num('location_id') });
                panel(app, 'polls');
              }}
            >
              {tick ? 'Ticks' : 'Polls'} of {poll.str('location')}
            </button>
          )}
        </p>
      </Section>
      <Legend />
    </article>
  );
}
