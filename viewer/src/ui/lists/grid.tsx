// SPDX-License-Identifier: Apache-2.0
// A table that can be sorted and filtered; a row leads to the timeline.
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { byUnit, count } from '../format';
import { Empty } from '../panels/common';

export interface GridColumn<T> {
  id: string;
  title: string;
  what?: string; // for the tooltip of the heading
  unit?: string; // of numbers; 'text' for text
  value: (row: T) => number | string;
  render?: (row: T) => ComponentChildren;
}

interface Props<T> {
  columns: GridColumn<T>[];
  rows: T[];
  name: string;
  none: string;
  keyOf: (row: T, i: number) => string | number;
  onOpen?: (row: T) => void;
  /** The order when it is made elsewhere, as for tables too large for the page. */
  sort?: { column: string; descending: boolean };
  onSort?: (column: string, descending: boolean) => void;
  note?: string;
  busy?: boolean;
}

const MOST = 1000;

export function sorted<T>(rows: T[], value: (row: T) => number | string, descending: boolean): T[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (typeof x === 'number' && typeof y === 'number') {
      if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
      return sign * (x - y);
    }
    return sign * String(x).localeCompare(String(y));
  });
}

function cell<T>(column: GridColumn<T>, row: T): ComponentChildren {
  if (column.render) return column.render(row);
  const value = column.value(row);
  return typeof value === 'string' ? value : byUnit(value, column.unit ?? '');
}

export function Grid<T>(p: Props<T>) {
  const [own, setOwn] = useState<{ column: string; descending: boolean } | null>(null);
  const [filter, setFilter] = useState('');
  const sort = p.sort ?? own;
  const shown = useMemo(() => {
    const wanted = filter.toLowerCase();
    let rows = p.rows;
    if (wanted)
      rows = rows.filter((row) =>
        p.columns.some((c) => {
          const value = c.value(row);
          return typeof value === 'string' && value.toLowerCase().includes(wanted);
        }),
      );
    const by = own && !p.sort ? p.columns.find((c) => c.id === own.column) : undefined;
    return by && own ? sorted(rows, by.value, own.descending) : rows;
  }, [p.rows, p.columns, filter, own, p.sort]);
  const order = (c: GridColumn<T>): void => {
    const descending = sort?.column === c.id ? !sort.descending : c.unit !== 'text';
    if (p.onSort) p.onSort(c.id, descending);
    else setOwn({ column: c.id, descending });
  };
  return (
    <div class="grid-panel" aria-busy={p.busy}>
      <div class="toolbar">
        <input
          type="search"
          placeholder="Filter rows"
          aria-label={`Filter ${p.name}`}
          value={filter}
          onInput={(e) => setFilter(e.currentTarget.value)}
        />
        <span class="muted" aria-live="polite">
          {count(shown.length)} {shown.length === 1 ? p.name.replace(/s$/, '') : p.name}
          {p.note ? `, ${p.note}` : ''}
        </span>
      </div>
      <div class="grid-scroll">
        {shown.length === 0 && !p.busy ? (
          <Empty>{filter ? 'No row has this text.' : p.none}</Empty>
        ) : (
          <table class="grid" data-testid={`grid-${p.name}`}>
            <thead>
              <tr>
                {p.columns.map((c) => (
                  <th
                    key={c.id}
                    class={c.unit === 'text' ? '' : 'num'}
                    aria-sort={sort?.column === c.id ? (sort.descending ? 'descending' : 'ascending') : 'none'}
                  >
                    <button title={c.what} onClick={() => order(c)}>
                      {c.title}
                      {sort?.column === c.id ? (sort.descending ? ' ▾' : ' ▴') : ''}
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.slice(0, MOST).map((row, i) => (
                <tr
                  key={p.keyOf(row, i)}
                  class={p.onOpen ? 'opens' : ''}
                  tabIndex={p.onOpen ? 0 : undefined}
                  onClick={() => p.onOpen?.(row)}
                  onKeyDown={(e) => {
                    if (e.key === 'Enter' && e.target === e.currentTarget) {
                      p.onOpen?.(row);
                      e.stopPropagation();
                    }
                  }}
                >
                  {p.columns.map((c) => (
                    <td key={c.id} class={c.unit === 'text' ? '' : 'num'}>
                      {cell(c, row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </div>
  );
}
