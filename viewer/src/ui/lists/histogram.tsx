// SPDX-License-Identifier: Apache-2.0
// Lengths of polls by location. A drag over the bars chooses a range; the list beside it has its polls.
import { useMemo, useRef, useState } from 'preact/hooks';
import { NONE } from '../../api';
import { go, select } from '../actions';
import { useApp, useAsync, useView } from '../context';
import { count, duration, moment } from '../format';
import { Empty } from '../panels/common';
import { columnsOf, filtersOf } from '../table';
import type { Row } from '../table';
import { slotOf } from '../theme';
import { histogram, lowerEdge } from './buckets';
import { Grid } from './grid';
import type { GridColumn } from './grid';
import { selected } from './rows';

const COLUMNS: GridColumn<Row>[] = [
  { id: 'duration_ns', title: 'length', unit: 'ns', value: (r) => r.num('duration_ns') },
  { id: 'location', title: 'location', unit: 'text', value: (r) => r.str('location') },
  { id: 'begin_ns', title: 'at', value: (r) => r.num('begin_ns'), render: (r) => moment(r.num('begin_ns')) },
];
const H = 150;

export function HistogramPanel() {
  const app = useApp();
  const selection = useView((v) => v.selection);
  const box = useRef<SVGSVGElement>(null);
  const [range, setRange] = useState<[number, number] | null>(null);
  const [from, setFrom] = useState<number | null>(null);
  const whole = useMemo(() => ({ ...selection, minPollNs: undefined }), [selection]);
  const { value: data, loading } = useAsync(async () => {
    const has = columnsOf(app.trace, 'poll');
    const rows = await app.trace.rows(
      'poll',
      ['duration_ns', 'location'],
      filtersOf(whole, 'poll', (c) => has.has(c)),
    );
    const names = rows.columns.location.values;
    const nameOf = (i: number): string => (names[i] === NONE ? 'no location' : (app.trace.strings[names[i]] ?? ''));
    return rows.n ? histogram(rows.columns.duration_ns.values, nameOf, 8) : null;
  }, [whole]);
  const low = range ? lowerEdge(Math.min(...range)) : 0;
  const high = range ? lowerEdge(Math.max(...range) + 1) : Infinity;
  const { value: rows } = useAsync(
    () =>
      selected(
        app,
        'poll',
        ['rowid', 'duration_ns', 'location', 'begin_ns', 'thread_id'],
        whole,
        { column: 'duration_ns', descending: true },
        [
          { column: 'duration_ns', op: '>=', value: low },
          ...(Number.isFinite(high) ? [{ column: 'duration_ns', op: '<=' as const, value: high }] : []),
        ],
      ),
    [whole, low, high],
  );
  if (!data)
    return loading ? <p class="muted">…</p> : <Empty>No poll in the selection was recorded one by one.</Empty>;
  const n = data.buckets - data.first;
  const bucketAt = (e: MouseEvent): number => {
    const r = box.current?.getBoundingClientRect();
    return r ? data.first + Math.max(0, Math.min(n - 1, Math.floor(((e.clientX - r.left) / r.width) * n))) : 0;
  };
  const height = (c: number): number => (c ? Math.max(2, (Math.log1p(c) / Math.log1p(data.most)) * (H - 20)) : 0);
  const chosen = (b: number): boolean => !!range && b >= Math.min(...range) && b <= Math.max(...range);
  return (
    <div class="histogram">
      <div class="histogram-left">
        <p class="muted">
          Polls by length, both scales of logarithms.{' '}
          {range ? (
            <>
              Chosen: {duration(low)} to {duration(high)}{' '}
              <button onClick={() => select(app, { minPollNs: Math.floor(low) })}>
                Only polls from {duration(low)}
              </button>{' '}
              <button onClick={() => setRange(null)}>Clear</button>
            </>
          ) : (
            'Drag to choose a range.'
          )}
        </p>
        <svg
          ref={box}
          viewBox={`0 0 ${n} ${H}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Histogram of ${count(data.polls)} polls`}
          onMouseDown={(e) => {
            const b = bucketAt(e);
            setFrom(b);
            setRange([b, b]);
          }}
          onMouseMove={(e) => from !== null && e.buttons === 1 && setRange([from, bucketAt(e)])}
          onMouseUp={() => setFrom(null)}
        >
          {Array.from({ length: n }, (_, k) => {
            const b = data.first + k;
            const parts = [...data.counts].map(([name, list]) => [name, list[b]] as const).filter(([, c]) => c);
            const sum = parts.reduce((s, [, c]) => s + c, 0);
            const whole_ = height(sum);
            let y = H - 2;
            return (
              <g key={b} opacity={range && !chosen(b) ? 0.3 : 1}>
                <title>
                  {`${duration(lowerEdge(b))} to ${duration(lowerEdge(b + 1))}: `}
                  {parts.map(([p, c]) => `${p} ${count(c)}`).join(', ')}
                </title>
                <rect x={k} y={0} width={1} height={H} fill="transparent" />
                {parts.map(([name, c]) => {
                  const h = (whole_ * c) / sum;
                  y -= h;
                  return <rect key={name} class={`cat-${slotOf(name)}`} x={k + 0.06} y={y} width={0.88} height={h} />;
                })}
              </g>
            );
          })}
        </svg>
        <div class="histogram-axis">
          {Array.from({ length: n }, (_, k) => data.first + k)
            .filter((b) => b % 8 === 0)
            .map((b) => (
              <span key={b} style={{ left: `${(100 * (b - data.first)) / n}%` }}>
                {duration(lowerEdge(b))}
              </span>
            ))}
        </div>
        <p class="legend">
          {[...data.counts.keys()].map((name) => (
            <span key={name}>
              <i class={`dot cat-${slotOf(name)}`} />
              {name}
            </span>
          ))}
        </p>
      </div>
      <Grid
        columns={COLUMNS}
        rows={rows ?? []}
        name="polls"
        none="No poll is in this range."
        keyOf={(r) => r.num('rowid')}
        onOpen={(r) => void go(app, 'poll', r.num('rowid'))}
      />
    </div>
  );
}
