// SPDX-License-Identifier: Apache-2.0
// The column on the right: the findings, or the panel of what was clicked.
import { useEffect, useRef } from 'preact/hooks';
import { focus, openItem, step, stepLong } from '../actions';
import { useApp, useView } from '../context';
import type { Item } from '../state';
import { Findings } from './findings';
import { SpanPanel, TaskPanel } from './group';
import { PollPanel } from './poll';
import { RowPanel } from './row';

function ItemPanel({ item }: { item: Item }) {
  if (item.kind === 'task') return <TaskPanel recording={item.recording} task={item.task} />;
  if (item.kind === 'span') return <SpanPanel span={item.span} />;
  if (item.table === 'poll') return <PollPanel rowid={item.rowid} />;
  return <RowPanel table={item.table} rowid={item.rowid} />;
}

export function Side() {
  const app = useApp();
  const item = useView((v) => v.item);
  const top = useRef<HTMLElement>(null);
  useEffect(() => top.current?.scrollTo(0, 0), [item]);
  const poll = item?.kind === 'row' && item.table === 'poll';
  const walk = (direction: 1 | -1) => () => void (poll ? stepLong(app, direction) : step(app, direction));
  return (
    <aside class="side" ref={top} aria-label={item ? 'Details' : 'Findings'}>
      {item && (
        <nav class="side-nav">
          <button onClick={() => openItem(app, null)}>← Findings</button>
          <span class="spring" />
          <button title={poll ? 'Previous long poll (p)' : 'Previous (,)'} onClick={walk(-1)}>
            ‹ {poll ? 'long' : 'previous'}
          </button>
          <button title={poll ? 'Next long poll (n)' : 'Next (.)'} onClick={walk(1)}>
            {poll ? 'long' : 'next'} ›
          </button>
          <button title="Centre, then fit (f)" onClick={() => focus(app)}>
            Fit
          </button>
        </nav>
      )}
      {item ? <ItemPanel item={item} /> : <Findings />}
    </aside>
  );
}
