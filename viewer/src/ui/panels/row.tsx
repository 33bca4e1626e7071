// SPDX-License-Identifier: Apache-2.0
// Panels of rows that are no polls: waits with their holders, samples with their stacks, and the rest by their columns.
import { useApp, useAsync } from '../context';
import { byUnit, duration } from '../format';
import { endOf, holders, waitedFor } from '../place';
import { isTick, one, timesOf } from '../table';
import type { Row } from '../table';
import { Empty, Fact, Moment, PollLink, Section, Stack, TaskLink } from './common';
import { Chain, Context } from './poll';

const TITLES: Record<string, string> = {
  wait: 'Wait',
  sample: 'CPU sample',
  offcpu: 'Off the CPU',
  park: 'Parked',
  event: 'Event',
  context: 'Change of context',
  stuck: 'Poll found running by the watchdog',
  loss: 'Lost',
  slice: 'Slice of a poll',
};

/** Columns that the panel shows in its own way, or that say nothing to people. */
const SHOWN = new Set(
  (
    'rowid recording thread_id tid thread worker_id worker begin_ns end_ns time_ns from_ns to_ns duration_ns ' +
    'stack_id kernel_stack_id poll_id task location span root_span trace endpoint labels holder holder_tid ' +
    'holder_thread_id holder_task holder_location holder_stack_id holder_function held_ns fields'
  ).split(' '),
);

function titleOf(table: string, row: Row): string {
  if (table === 'wait') return waitedFor(row) || row.str('kind') || 'Wait';
  if (table === 'sample') return row.str('function') || 'CPU sample';
  if (table === 'event') return row.str('kind') || `Event of kind ${row.str('kind_id')}`;
  if (table === 'loss') return row.str('reason');
  if (table === 'context') return row.str('endpoint') || row.str('span') || 'No context from here on';
  if (table === 'offcpu') return row.str('state');
  return TITLES[table] ?? table;
}

function Fields({ rowid }: { rowid: number }) {
  const app = useApp();
  const { value: row } = useAsync(
    () => one(app.trace, 'event', [{ column: 'rowid', op: '=', value: rowid }], ['fields']),
    [rowid],
  );
  const text = row?.str('fields');
  if (!text) return null;
  let fields: [string, unknown][] = [];
  try {
    fields = Object.entries(JSON.parse(text) as Record<string, unknown>);
  } catch {
    return <Fact name="fields">{text}</Fact>;
  }
  return (
    <>
      {fields.map(([name, value]) => (
        <Fact key={name} name={name}>
          {String(value)}
        </Fact>
      ))}
    </>
  );
}

function WaitParts({ row }: { row: Row }) {
  const app = useApp();
  const { value } = useAsync(() => holders(app, row), [row]);
  if (!value) return null;
  if (!value.length && row.str('kind') !== 'call')
    return (
      <Section title="Held by">
        <Empty>Who held it is not known.</Empty>
      </Section>
    );
  const stack = row.num('holder_stack_id');
  return (
    <>
      <Chain chain={value} />
      {!Number.isNaN(stack) && (
        <Section title="What the holder did">
          <Stack id={stack} />
        </Section>
      )}
    </>
  );
}

function Others({ row, table }: { row: Row; table: string }) {
  const cells = Object.values(row.rows.columns).filter((c) => !SHOWN.has(c.info.name) && row.has(c.info.name));
  const value = (c: (typeof cells)[number]): string => {
    const n = row.num(c.info.name);
    return Number.isNaN(n) || !c.info.unit ? row.str(c.info.name) : byUnit(n, c.info.unit);
  };
  return (
    <dl>
      {cells.map((c) => (
        <Fact key={c.info.name} name={c.info.name.replace(/_ns$/, '').replace(/_/g, ' ')}>
          <span title={c.info.meaning}>{value(c)}</span>
        </Fact>
      ))}
      {table === 'event' && <Fields rowid={row.num('rowid')} />}
    </dl>
  );
}

export function RowPanel({ table, rowid }: { table: string; rowid: number }) {
  const app = useApp();
  const { value: row, loading } = useAsync(
    () => one(app.trace, table, [{ column: 'rowid', op: '=', value: rowid }]),
    [table, rowid],
  );
  if (!row || row.rows.table !== table)
    return loading ? <p class="muted">…</p> : <Empty>This row is not in the trace.</Empty>;
  const from = row.num(timesOf(table)[0]);
  const to = endOf(app, row, table);
  const long = row.num('duration_ns');
  return (
    <article data-testid="row-panel" aria-busy={loading}>
      <h2>{titleOf(table, row)}</h2>
      <p class="lead">
        {TITLES[table] ?? table}
        {!Number.isNaN(long) && (
          <>
            {' '}
            of <b>{duration(long)}</b>
          </>
        )}
        {(row.has('worker') || row.has('thread')) && <> on {row.str('worker') || row.str('thread')}</>} at{' '}
        <Moment ns={from} toNs={to} />
      </p>
      {table === 'wait' && <WaitParts row={row} />}
      {row.has('poll_id') && (
        <Section title={isTick(row) ? 'In the tick' : 'In the poll'}>
          <p>
            <PollLink id={row.num('poll_id')}>{row.str('location') || `poll ${row.str('poll_id')}`}</PollLink>
            {row.has('task') && !isTick(row) && (
              <>
                {' '}
                of <TaskLink recording={row.num('recording')} task={row.num('task')} />
              </>
            )}
          </p>
        </Section>
      )}
      {row.has('stack_id') && (
        <Section title="Stack">
          <Stack id={row.num('stack_id')} open />
        </Section>
      )}
      {row.has('kernel_stack_id') && (
        <Section title="Stack in the kernel">
          <Stack id={row.num('kernel_stack_id')} />
        </Section>
      )}
      {table !== 'context' && <Context row={row} />}
      {table === 'context' && row.has('span') && <Context row={row} />}
      <Section title="More">
        <Others row={row} table={table} />
      </Section>
    </article>
  );
}
