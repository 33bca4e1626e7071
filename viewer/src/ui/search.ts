// SPDX-License-Identifier: Apache-2.0
// Finds what a text names: locations, locks, calls, functions, endpoints, tasks and spans. Enter walks through them.
import { go } from './actions';
import type { App, Match } from './context';
import { many, timesOf } from './table';
import type { Row } from './table';

const EACH = 200;
const NAMES = 12;

/** Distinct texts of a column that contain the wanted one. */
async function names(app: App, table: string, column: string, wanted: string): Promise<string[]> {
  const rows = await app.trace.rows(table, [column], [], 2_000_000);
  const seen = new Set<number>();
  const values = rows.columns[column]?.values ?? [];
  for (let i = 0; i < rows.n; i++) seen.add(values[i]);
  return [...seen]
    .map((id) => app.trace.strings[id] ?? '')
    .filter((text) => text.toLowerCase().includes(wanted))
    .slice(0, NAMES);
}

function match(table: string, label: string, row: Row): Match {
  const [begin, end] = timesOf(table);
  const from = row.num(begin) - (table === 'sample' ? row.num('weight_ns') || 0 : 0);
  const to = row.num(end);
  return {
    table,
    rowid: row.num('rowid'),
    threadId: row.num('thread_id'),
    fromNs: from,
    toNs: Number.isNaN(to) ? from : to,
    label,
  };
}

async function rowsWith(
  app: App,
  table: string,
  column: string,
  value: string | number,
  order: string,
): Promise<Match[]> {
  const columns = ['rowid', 'thread_id', ...new Set(timesOf(table)), ...(table === 'sample' ? ['weight_ns'] : [])];
  const rows = await many(app.trace, table, columns, [{ column, op: '=', value }], EACH, {
    column: order,
    descending: true,
  });
  return rows.map((row) => match(table, String(value), row));
}

export async function search(app: App, text: string): Promise<Match[]> {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const found: Promise<Match[]>[] = [];
  const inColumn = async (
    list: string,
    name: string,
    table: string,
    column: string,
    order: string,
  ): Promise<Match[]> => {
    const values = await names(app, list, name, wanted);
    return (await Promise.all(values.map((v) => rowsWith(app, table, column, v, order)))).flat();
  };
  found.push(inColumn('location', 'name', 'poll', 'location', 'duration_ns'));
  found.push(inColumn('wait', 'name', 'wait', 'name', 'duration_ns'));
  found.push(inColumn('wait', 'object_name', 'wait', 'object_name', 'duration_ns'));
  found.push(inColumn('sample', 'function', 'sample', 'function', 'weight_ns'));
  found.push(inColumn('context', 'endpoint', 'poll', 'endpoint', 'duration_ns'));
  found.push(inColumn('event', 'kind', 'event', 'kind', 'time_ns'));
  if (/^\d+$/.test(wanted)) found.push(rowsWith(app, 'poll', 'task', Number(wanted), 'duration_ns'));
  if (/^[0-9a-f]{16}$/.test(wanted)) {
    found.push(rowsWith(app, 'poll', 'span', wanted, 'duration_ns'));
    found.push(rowsWith(app, 'wait', 'span', wanted, 'duration_ns'));
  }
  const seen = new Set<string>();
  return (await Promise.all(found))
    .flat()
    .filter((m) => {
      const key = `${m.table}/${m.rowid}`;
      if (seen.has(key) || Number.isNaN(m.fromNs)) return false;
      seen.add(key);
      return true;
    })
    .sort((a, b) => a.fromNs - b.fromNs);
}

/** Enter and Shift+Enter: to the next or the previous match, and around. */
export async function walk(app: App, direction: 1 | -1): Promise<void> {
  const { matches, match } = app.loaded.get();
  if (!matches.length) return;
  let next = match + direction;
  if (match < 0) {
    const { fromNs } = app.view.get();
    next = Math.max(
      0,
      matches.findIndex((m) => m.fromNs >= fromNs),
    );
  }
  next = (next + matches.length) % matches.length;
  app.loaded.set({ match: next });
  await go(app, matches[next].table, matches[next].rowid);
}

/** Lanes whose name has the text: for the list under the box. */
export function lanes(app: App, text: string): { id: number; name: string }[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  return app.loaded.get().info.lanes.filter((l) => l.name.toLowerCase().includes(wanted));
}
