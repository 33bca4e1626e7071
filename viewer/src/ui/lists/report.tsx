// SPDX-License-Identifier: Apache-2.0
// Lists from weft report --json of the selection: the same figures, since it is the same code.
import { useMemo } from 'preact/hooks';
import { go, panel, select } from '../actions';
import type { App } from '../context';
import { useApp, useAsync, useView } from '../context';
import { baseName, duration, lockName } from '../format';
import { many } from '../table';
import { Grid } from './grid';
import type { GridColumn } from './grid';

export type Json = Record<string, unknown>;

/** Follows names through objects; undefined where one is null. */
export function at(from: unknown, path: string): unknown {
  let value = from;
  for (const key of path.split('.')) value = (value as Json | null | undefined)?.[key];
  return value;
}
function number(path: string): (row: Json) => number {
  return (row) => {
    const value = at(row, path);
    return typeof value === 'number' ? value : NaN;
  };
}
function string(path: string): (row: Json) => string {
  return (row) => {
    const value = at(row, path);
    return value === null || value === undefined ? '' : String(value);
  };
}
const text = (id: string, title: string, path = id): GridColumn<Json> => ({
  id,
  title,
  unit: 'text',
  value: string(path),
});
const ns = (id: string, title: string, path = id): GridColumn<Json> => ({
  id,
  title,
  unit: 'ns',
  value: number(path),
});
const n = (id: string, title: string, path = id): GridColumn<Json> => ({ id, title, unit: '1', value: number(path) });

/** Rows of all recordings, as an answer that follows the selection. */
function useReport(path: string): { rows: Json[]; note: string | undefined; loading: boolean; error: string } {
  const app = useApp();
  const selection = useView((v) => v.selection);
  const { value, loading, error } = useAsync(() => app.trace.report(selection), [selection]);
  const rows = useMemo(() => {
    const recordings = (at(value, 'recordings') as Json[] | undefined) ?? [];
    return recordings.flatMap((r) => (at(r, path) as Json[] | null | undefined) ?? []);
  }, [value, path]);
  const left = (at(value, 'not_applied') as string[] | undefined) ?? [];
  const note = left.length ? `not restricted by ${left.map((name) => PLAIN[name] ?? name).join(', ')}` : undefined;
  return { rows, note, loading, error };
}

const PLAIN: Record<string, string> = {
  lanes: 'several lanes at once',
  task: 'task',
  pollId: 'poll',
  minPollNs: 'length of polls',
};

interface Kind {
  path: string;
  columns: GridColumn<Json>[];
  none: string;
  open?: (app: App, row: Json) => void;
}

async function longest(app: App, table: string, column: string, value: string): Promise<void> {
  const order = { column: 'duration_ns', descending: true };
  const rows = await many(app.trace, table, ['rowid'], [{ column, op: '=', value }], 1, order);
  if (rows[0]) await go(app, table, rows[0].num('rowid'));
}

const place: GridColumn<Json> = {
  id: 'file',
  title: 'source',
  unit: 'text',
  value: (row) => (row.file ? `${baseName(String(row.file))}:${row.line}` : ''),
};

export const KINDS: Record<string, Kind> = {
  locations: {
    path: 'locations',
    columns: [
      text('location', 'location'),
      place,
      n('count', 'polls', 'polls.count'),
      ns('p50', 'p50', 'polls.p50_ns'),
      ns('p99', 'p99', 'polls.p99_ns'),
      ns('max', 'max', 'polls.max_ns'),
      ns('total', 'together', 'polls.total_ns'),
      ns('cpu', 'CPU', 'cpu.cpu_ns'),
      ns('delay99', 'delay p99', 'wake_to_poll.p99_ns'),
      ns('delaymax', 'delay max', 'wake_to_poll.max_ns'),
      n('alive', 'tasks alive'),
    ],
    none: 'No task was polled in the selection.',
    open: (app, row) => void longest(app, 'poll', 'location', String(row.location)),
  },
  locks: {
    path: 'wait_objects',
    columns: [
      { id: 'name', title: 'lock', unit: 'text', value: (r) => lockName(string('object_name')(r), string('name')(r)) },
      text('kind', 'kind'),
      {
        id: 'object',
        title: 'at',
        unit: 'text',
        value: (r) => (typeof r.object === 'number' ? `0x${r.object.toString(16)}` : ''),
      },
      n('times', 'waits'),
      ns('total_ns', 'together'),
      ns('longest_ns', 'longest'),
      text('holder', 'held in the longest by', 'holder.where.worker'),
      ns('held', 'for', 'holder.held_ns'),
      text('doing', 'which was', 'holder.doing'),
    ],
    none: 'No wait for a lock in the selection was recorded one by one.',
    open: (app, row) =>
      void (row.object_name
        ? longest(app, 'wait', 'object_name', String(row.object_name))
        : longest(app, 'wait', 'name', String(row.name ?? ''))),
  },
  waits: {
    path: 'waits',
    columns: [
      {
        id: 'waited_for',
        title: 'waited for',
        unit: 'text',
        value: (r) => String(r.waited_for ?? r.name ?? r.kind ?? ''),
      },
      text('kind', 'kind'),
      n('times', 'waits'),
      ns('total_ns', 'together'),
      ns('longest_ns', 'longest'),
      ns('mean_ns', 'mean'),
      ns('on_workers_ns', 'on workers'),
      n('one_by_one', 'recorded one by one'),
    ],
    none: 'No wait is in the selection.',
    open: (app, row) => void longest(app, 'wait', 'name', String(row.name ?? '')),
  },
  functions: {
    path: 'cpu.functions',
    columns: [
      text('function', 'function'),
      ns('self_ns', 'self'),
      ns('total_ns', 'total'),
      n('self_samples', 'samples'),
      { id: 'module', title: 'module', unit: 'text', value: (r) => baseName(String(r.module ?? '')) },
    ],
    none: 'No CPU sample is in the selection.',
    open: (app, row) => {
      app.view.set({ search: String(row.function) });
      panel(app, 'flame');
    },
  },
  threads: {
    path: 'cpu.threads',
    columns: [
      text('worker', 'thread'),
      ns('cpu_ns', 'CPU, by samples'),
      ns('clock', 'CPU, by clock', 'measured.cpu_ns'),
      n('samples', 'samples'),
      ns('in_polls', 'in polls', 'where.in_polls.cpu_ns'),
      ns('between', 'between polls', 'where.between_polls.cpu_ns'),
      ns('parked', 'parked', 'where.parked.cpu_ns'),
      n('tid', 'tid'),
    ],
    none: 'No thread has a CPU sample in the selection.',
    open: (app, row) => {
      const lane = app.loaded.get().info.lanes.find((l) => l.tid === row.tid);
      if (lane) select(app, { threadIds: [lane.threadId] });
    },
  },
};

export function ReportList({ kind }: { kind: string }) {
  const app = useApp();
  const { path, columns, none, open } = KINDS[kind];
  const { rows, note, loading, error } = useReport(path);
  if (error) return <p class="problem">{error}</p>;
  return (
    <Grid
      key={kind}
      columns={columns}
      rows={rows}
      name={kind}
      none={none}
      busy={loading}
      note={note}
      keyOf={(_, i) => i}
      onOpen={open && ((row) => open(app, row))}
    />
  );
}

interface Descriptor {
  call: string;
  fd: number;
  about: string;
  times: number;
  total: number;
  longest: number;
  rowid: number;
}

const DESCRIPTORS: GridColumn<Descriptor>[] = [
  { id: 'call', title: 'call', unit: 'text', value: (d) => d.call },
  { id: 'fd', title: 'fd', value: (d) => d.fd, render: (d) => String(d.fd) },
  {
    id: 'about',
    title: 'what it was',
    unit: 'text',
    value: (d) => d.about,
    render: (d) => d.about || <span class="muted">not known</span>,
  },
  { id: 'times', title: 'waits', unit: '1', value: (d) => d.times },
  { id: 'total', title: 'together', unit: 'ns', value: (d) => d.total },
  { id: 'longest', title: 'longest', unit: 'ns', value: (d) => d.longest, render: (d) => duration(d.longest) },
];

/** Calls that were recorded one by one, by the descriptor that they waited for. */
export function Descriptors() {
  const app = useApp();
  const { fromNs, toNs } = useView((v) => v.selection);
  const { value, loading } = useAsync(
    () =>
      many(
        app.trace,
        'wait',
        ['rowid', 'name', 'fd', 'about', 'duration_ns'],
        [
          { column: 'fd', op: '>=', value: 0 },
          ...(fromNs === undefined ? [] : [{ column: 'end_ns', op: '>=' as const, value: fromNs }]),
          ...(toNs === undefined ? [] : [{ column: 'begin_ns', op: '<' as const, value: toNs }]),
        ],
        200000,
      ),
    [fromNs, toNs],
  );
  const rows = useMemo(() => {
    const sums = new Map<string, Descriptor>();
    for (const r of value ?? []) {
      const key = `${r.str('name')}/${r.num('fd')}/${r.str('about')}`;
      let d = sums.get(key);
      if (!d) {
        d = {
          call: r.str('name'),
          fd: r.num('fd'),
          about: r.str('about'),
          times: 0,
          total: 0,
          longest: 0,
          rowid: 0,
        };
        sums.set(key, d);
      }
      d.times++;
      d.total += r.num('duration_ns');
      if (r.num('duration_ns') >= d.longest) [d.longest, d.rowid] = [r.num('duration_ns'), r.num('rowid')];
    }
    return [...sums.values()].sort((a, b) => b.total - a.total);
  }, [value]);
  return (
    <Grid
      columns={DESCRIPTORS}
      rows={rows}
      name="descriptors"
      busy={loading}
      none="No call in the selection waited for a descriptor long enough to be recorded by itself."
      keyOf={(d) => `${d.call}/${d.fd}/${d.about}`}
      onOpen={(d) => void go(app, 'wait', d.rowid)}
    />
  );
}
