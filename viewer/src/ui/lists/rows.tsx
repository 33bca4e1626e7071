// SPDX-License-Identifier: Apache-2.0
// Lists of rows of one table, in an order that the engine makes: worst polls, delays, and any table as it is.
import { useMemo, useState } from 'preact/hooks';
import { go } from '../actions';
import type { App } from '../context';
import { useApp, useAsync, useView } from '../context';
import { duration, moment } from '../format';
import { PartsBar } from '../panels/common';
import type { Piece } from '../panels/common';
import type { Selection } from '../../api';
import { columnsOf, filtersOf, inLanes, isTick, many } from '../table';
import type { Row } from '../table';
import { PARTS } from '../theme';
import { Grid } from './grid';
import type { GridColumn } from './grid';

const MOST = 500;
const PART_COLUMNS = ['on_cpu_ns', 'blocked_ns', 'waiting_ns', 'preempted_ns', 'not_measured_ns'];

function text(id: string, title = id): GridColumn<Row> {
  return { id, title, unit: 'text', value: (r) => r.str(id) };
}
function ns(id: string, title: string): GridColumn<Row> {
  return { id, title, unit: 'ns', value: (r) => r.num(id), render: (r) => (r.has(id) ? duration(r.num(id)) : '') };
}
function at(id: string): GridColumn<Row> {
  return {
    id,
    title: 'at',
    unit: 'ns',
    value: (r) => r.num(id),
    render: (r) => (r.has(id) ? moment(r.num(id)) : ''),
  };
}
function pieces(r: Row): Piece[] {
  return PART_COLUMNS.map((c, part) => ({ part, ns: r.num(c) || 0, title: PARTS[part] }));
}

const WORKER: GridColumn<Row> = {
  id: 'worker',
  title: 'on',
  unit: 'text',
  value: (r) => r.str('worker') || r.str('thread'),
};
const POLLS: GridColumn<Row>[] = [
  ns('duration_ns', 'length'),
  text('location'),
  {
    id: 'parts',
    title: 'time',
    unit: 'text',
    value: () => '',
    render: (r) => <PartsBar pieces={pieces(r)} whole={r.num('duration_ns')} />,
  },
  WORKER,
  at('begin_ns'),
  ns('on_cpu_ns', 'on CPU'),
  ns('blocked_ns', 'blocked'),
  ns('waiting_ns', 'waiting'),
  ns('preempted_ns', 'preempted'),
  ns('wake_delay_ns', 'delay'),
  { id: 'task', title: 'task', value: (r) => (isTick(r) ? NaN : r.num('task')) },
  text('endpoint'),
];
const DELAYS: GridColumn<Row>[] = [
  ns('wake_delay_ns', 'delay'),
  text('location'),
  WORKER,
  at('begin_ns'),
  text('waker_location', 'woken by'),
  text('waker_worker', 'from'),
  ns('behind_ns', 'behind another poll'),
  { id: 'queue_depth', title: 'queue', value: (r) => r.num('queue_depth') },
  { id: 'task', title: 'task', value: (r) => (isTick(r) ? NaN : r.num('task')) },
];
const NEEDED = [
  ...new Set([...POLLS, ...DELAYS].map((c) => c.id).filter((id) => id !== 'parts')),
  ...PART_COLUMNS,
  'rowid',
  'thread_id',
  'thread',
  'end_ns',
];

/** Rows of a table in the selection. Of several lanes they are sorted out here, from more rows than are shown. */
export async function selected(
  app: App,
  table: string,
  columns: string[] | undefined,
  selection: Selection,
  order: { column: string; descending: boolean } | undefined,
  extra: { column: string; op: '>=' | '<='; value: number }[] = [],
): Promise<Row[]> {
  const has = columnsOf(app.trace, table);
  const filters = [...filtersOf(selection, table, (c) => has.has(c)), ...extra];
  const several = (selection.threadIds?.length ?? 0) > 1;
  const rows = await many(
    app.trace,
    table,
    columns?.filter((c) => has.has(c) || c === 'rowid'),
    filters,
    several ? 8 * MOST : MOST,
    order,
  );
  return several ? rows.filter((r) => inLanes(r, selection)).slice(0, MOST) : rows;
}

function PollGrid({ kind }: { kind: 'polls' | 'delays' }) {
  const app = useApp();
  const selection = useView((v) => v.selection);
  const columns = kind === 'polls' ? POLLS : DELAYS;
  const [sort, setSort] = useState({ column: columns[0].id, descending: true });
  const { value, loading } = useAsync(
    () =>
      selected(
        app,
        'poll',
        NEEDED,
        selection,
        sort,
        kind === 'delays' ? [{ column: 'wake_delay_ns', op: '>=', value: 1 }] : [],
      ),
    [selection, sort, kind],
  );
  const rows = value ?? [];
  return (
    <Grid
      columns={columns}
      rows={rows}
      name={kind}
      busy={loading}
      none={
        kind === 'polls'
          ? 'No poll in the selection was recorded one by one.'
          : 'No poll in the selection has a wake that was recorded.'
      }
      note={rows.length === MOST ? 'the first in this order; there are more' : undefined}
      keyOf={(r) => r.num('rowid')}
      onOpen={(r) => void go(app, 'poll', r.num('rowid'))}
      sort={sort}
      onSort={(column, descending) => column !== 'parts' && setSort({ column, descending })}
    />
  );
}

export function Polls() {
  return <PollGrid kind="polls" />;
}
export function Delays() {
  return <PollGrid kind="delays" />;
}

/** Tables whose rows have a place on the timeline. */
const PLACED = new Set(['poll', 'wait', 'sample', 'offcpu', 'park', 'event', 'context', 'stuck', 'loss', 'slice']);

export function Tables() {
  const app = useApp();
  const table = useView((v) => v.table);
  const selection = useView((v) => v.selection);
  const info = app.trace.info.tables.find((t) => t.name === table);
  const [sort, setSort] = useState<{ table: string; column: string; descending: boolean } | null>(null);
  const order = sort?.table === table ? sort : undefined;
  const timed = PLACED.has(table);
  const { value, loading, error } = useAsync(
    () => selected(app, table, undefined, timed ? selection : {}, order),
    [table, selection, order],
  );
  const columns = useMemo(
    (): GridColumn<Row>[] =>
      (info?.columns ?? []).map((c) => ({
        id: c.name,
        title: c.name,
        what: c.meaning + (c.absent ? ` (empty when ${c.absent})` : ''),
        unit: c.type === 'number' || c.type === 'real' ? c.unit || '1' : 'text',
        value: (r) => (c.type === 'number' || c.type === 'real' ? r.num(c.name) : r.str(c.name)),
      })),
    [info],
  );
  const rows = value && value[0]?.rows.table === table ? value : [];
  return (
    <div class="tables">
      <div class="toolbar">
        <label>
          Table{' '}
          <select value={table} onChange={(e) => app.view.set({ table: e.currentTarget.value })}>
            {app.trace.info.tables.map((t) => (
              <option key={t.name} value={t.name}>
                {t.name}
              </option>
            ))}
          </select>
        </label>
        <span class="muted">{info?.meaning}</span>
        {error && <span class="problem">{error}</span>}
      </div>
      <Grid
        columns={columns}
        rows={rows}
        name="rows"
        busy={loading}
        none={`Table ${table} has no row${timed ? ' in the selection' : ''}.`}
        note={rows.length === MOST ? `the first ${MOST}` : undefined}
        keyOf={(_, i) => i}
        onOpen={timed ? (r) => void go(app, table, r.num('rowid')) : undefined}
        sort={order}
        onSort={(column, descending) => setSort({ table, column, descending })}
      />
    </div>
  );
}
