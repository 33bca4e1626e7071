// SPDX-License-Identifier: Apache-2.0
// Reading cells of the tables that the engine hands over.
import { NONE } from '../api';
import type { Filter, Rows, Selection, Trace } from '../api';

/** The number of a cell; NaN where it is NULL or the column is not there. */
export function num(rows: Rows, column: string, i: number): number {
  const col = rows.columns[column];
  if (!col || i >= rows.n) return NaN;
  const value = col.values[i];
  const text = col.info.type === 'text' || col.info.type === 'hex' || col.info.type === 'id';
  return text ? NaN : value;
}

/** The text of a cell; '' where it is NULL or the column is not there. */
export function str(trace: Trace, rows: Rows, column: string, i: number): string {
  const col = rows.columns[column];
  if (!col || i >= rows.n) return '';
  const value = col.values[i];
  if (col.info.type === 'text' || col.info.type === 'hex' || col.info.type === 'id')
    return value === NONE ? '' : (trace.strings[value] ?? '');
  return Number.isNaN(value) ? '' : String(value);
}

/** Reader of one row. */
export class Row {
  constructor(
    readonly trace: Trace,
    readonly rows: Rows,
    readonly i: number,
  ) {}
  num(column: string): number {
    return num(this.rows, column, this.i);
  }
  str(column: string): string {
    return str(this.trace, this.rows, column, this.i);
  }
  has(column: string): boolean {
    return this.str(column) !== '';
  }
}

export function all(trace: Trace, rows: Rows): Row[] {
  return Array.from({ length: rows.n }, (_, i) => new Row(trace, rows, i));
}

/** All columns that the engine keeps: the ids of traces and fields of events take a pass over the segments. */
function withRowid(trace: Trace, table: string): string[] {
  return ['rowid', ...columnsOf(trace, table)].filter((c) => c !== 'trace' && c !== 'fields');
}

export async function one(trace: Trace, table: string, filters: Filter[], columns?: string[]): Promise<Row | null> {
  const rows = await trace.rows(table, columns ?? withRowid(trace, table), filters, 1);
  return rows.n ? new Row(trace, rows, 0) : null;
}

export async function many(
  trace: Trace,
  table: string,
  columns: string[] | undefined,
  filters: Filter[],
  limit: number,
  order?: { column: string; descending: boolean },
): Promise<Row[]> {
  return all(trace, await trace.rows(table, columns ?? withRowid(trace, table), filters, limit, order));
}

/** Turns of an event loop that weft run sees from outside: there are no tasks, so a poll is a tick. */
export function isTick(row: Row): boolean {
  return /^loop\//.test(row.str('worker')) && row.str('location').endsWith('loop');
}

/** The columns of a table that say where in time a row is. */
const TIMES: Record<string, [string, string]> = {
  poll: ['begin_ns', 'end_ns'],
  slice: ['begin_ns', 'end_ns'],
  wait: ['begin_ns', 'end_ns'],
  offcpu: ['begin_ns', 'end_ns'],
  park: ['begin_ns', 'end_ns'],
  loss: ['from_ns', 'to_ns'],
};

export function timesOf(table: string): [string, string] {
  return TIMES[table] ?? ['time_ns', 'time_ns'];
}

/** A selection as filters of a table with the columns of polls or waits; lanes are left to `inLanes`. */
export function filtersOf(selection: Selection, table: string, has: (column: string) => boolean): Filter[] {
  const [begin, end] = timesOf(table);
  const filters: Filter[] = [];
  if (selection.fromNs !== undefined) filters.push({ column: end, op: '>=', value: selection.fromNs });
  if (selection.toNs !== undefined) filters.push({ column: begin, op: '<', value: selection.toNs });
  const add = (column: string, value: number | string | undefined): void => {
    if (value !== undefined && has(column)) filters.push({ column, op: '=', value });
  };
  add('recording', selection.recording);
  add('task', selection.task);
  add('location_id', selection.locationId);
  add('span', selection.spanId);
  if (selection.threadIds?.length === 1) add('thread_id', selection.threadIds[0]);
  if (selection.pollId !== undefined) add(table === 'poll' ? 'id' : 'poll_id', selection.pollId);
  if (selection.minPollNs !== undefined && table === 'poll')
    filters.push({ column: 'duration_ns', op: '>=', value: selection.minPollNs });
  return filters;
}

/** Which rows are of the lanes that a selection names, where filters cannot say so. */
export function inLanes(row: Row, selection: Selection): boolean {
  const threads = selection.threadIds;
  return !threads || threads.length === 0 || threads.includes(row.num('thread_id'));
}

export function columnsOf(trace: Trace, table: string): Set<string> {
  return new Set(trace.info.tables.find((t) => t.name === table)?.columns.map((c) => c.name) ?? []);
}
