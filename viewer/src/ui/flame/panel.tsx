// SPDX-License-Identifier: Apache-2.0
// The flame graph of the selection, what was done to it with the way back, and the table of functions beside it.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Flame, Weight } from '../../api';
import { useApp, useAsync, useView } from '../context';
import { baseName, count, duration, share } from '../format';
import { Empty } from '../panels/common';
import { isEmpty } from '../state';
import type { Transform } from '../state';
import { Graph } from './graph';
import {
  PATH,
  applied,
  callers,
  difference,
  focus,
  fromFlame,
  invert as inverted,
  lines,
  nodeAt,
  pathText,
  sums,
} from './transform';
import type { FnSum, Tree } from './transform';

const WEIGHTS: { id: Weight; name: string; what: string; none: string }[] = [
  { id: 'cpu', name: 'CPU', what: 'CPU time, by samples', none: 'No CPU sample is in the selection.' },
  {
    id: 'offcpu',
    name: 'off CPU',
    what: 'time off the CPU, by context switches',
    none: 'No context switch is in the selection.',
  },
  { id: 'wait', name: 'waits', what: 'time in waits for locks and calls', none: 'No wait is in the selection.' },
  {
    id: 'wall',
    name: 'wall',
    what: 'all time, on and off the CPU',
    none: 'Nothing with a stack is in the selection.',
  },
];

function Toolbar({ picked }: { picked: string }) {
  const app = useApp();
  const weight = useView((v) => v.weight);
  const invert = useView((v) => v.invert);
  const baseline = useView((v) => v.baseline);
  const search = useView((v) => v.search);
  const add = (kind: Transform['kind']) => () =>
    app.view.set({
      transforms: [...app.view.get().transforms.filter((t) => t.kind !== 'zoom'), { kind, name: picked }],
    });
  return (
    <div class="toolbar" role="toolbar" aria-label="Flame graph">
      <span class="segmented" role="group" aria-label="Weight">
        {WEIGHTS.map((w) => (
          <button
            key={w.id}
            aria-pressed={weight === w.id}
            title={w.what}
            onClick={() => app.view.set({ weight: w.id })}
          >
            {w.name}
          </button>
        ))}
      </span>
      <button
        aria-pressed={invert}
        title="Innermost functions first"
        onClick={() => app.view.set({ invert: !invert, transforms: [] })}
      >
        Invert
      </button>
      <input
        type="search"
        placeholder="Highlight functions"
        aria-label="Highlight functions by name"
        value={search}
        onInput={(e) => app.view.set({ search: e.currentTarget.value })}
      />
      {baseline ? (
        <button onClick={() => app.view.set({ baseline: null })}>End comparison</button>
      ) : (
        <button
          title="Keeps this selection as the one that the next ones are compared with"
          onClick={() => app.view.set({ baseline: { ...app.view.get().selection }, transforms: [] })}
        >
          Compare from here
        </button>
      )}
      <span class="spring" />
      {picked && (
        <span class="picked">
          <code>{picked}</code>
          <button onClick={add('focus')} title="Only what happens in it">
            Focus
          </button>
          <button onClick={add('merge')} title="Its own time becomes its callers'">
            Merge
          </button>
          <button onClick={add('drop')} title="Without stacks that it is in">
            Drop
          </button>
          <button onClick={add('sandwich')} title="Who calls it above, what it calls below">
            Sandwich
          </button>
        </span>
      )}
    </div>
  );
}

const VERBS: Record<Transform['kind'], string> = {
  focus: 'only',
  merge: 'merged',
  drop: 'without',
  zoom: 'zoomed to',
  sandwich: 'callers and callees of',
};

function WayBack() {
  const app = useApp();
  const transforms = useView((v) => v.transforms);
  if (!transforms.length) return null;
  const back = (n: number) => () => app.view.set({ transforms: transforms.slice(0, n) });
  return (
    <nav class="way-back" aria-label="What was done to the flame graph">
      <button onClick={back(0)}>All</button>
      {transforms.map((t, i) => (
        <span key={i}>
          <span class="muted"> › </span>
          <button onClick={back(i + 1)}>
            {VERBS[t.kind]} {t.kind === 'zoom' ? t.name.split(PATH).pop() : t.name}
          </button>
        </span>
      ))}
      <button class="back" onClick={back(transforms.length - 1)}>
        ← Back
      </button>
    </nav>
  );
}

function Lines({ flame, name }: { flame: Flame; name: string }) {
  const list = useMemo(() => lines(flame, name), [flame, name]);
  if (!list.length) return <p class="muted">Lines of {name} are not known.</p>;
  return (
    <table class="plain">
      <caption>
        Lines of <code>{name}</code>
      </caption>
      <tbody>
        {list.slice(0, 30).map((l) => (
          <tr key={`${l.file}:${l.line}`} title={l.file}>
            <td>
              {baseName(l.file)}:{l.line}
            </td>
            <td class="num">{duration(l.self)}</td>
            <td class="num muted">{duration(l.total)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function FunctionTable({
  list,
  whole,
  onPick,
  picked,
}: {
  list: FnSum[];
  whole: number;
  onPick: (name: string) => void;
  picked: string;
}) {
  const [by, setBy] = useState<'self' | 'total'>('self');
  const search = useView((v) => v.search).toLowerCase();
  const rows = useMemo(
    () => list.filter((f) => f.name.toLowerCase().includes(search)).sort((a, b) => b[by] - a[by]),
    [list, by, search],
  );
  const head = (column: 'self' | 'total') => (
    <th class="num" aria-sort={by === column ? 'descending' : 'none'}>
      <button onClick={() => setBy(column)}>
        {column}
        {by === column ? ' ▾' : ''}
      </button>
    </th>
  );
  return (
    <table class="plain functions" data-testid="functions">
      <thead>
        <tr>
          <th>function</th>
          {head('self')}
          {head('total')}
        </tr>
      </thead>
      <tbody>
        {rows.slice(0, 200).map((f) => (
          <tr key={`${f.name}/${f.module}`} class={f.name === picked ? 'on' : ''}>
            <td title={f.module}>
              <button class="link" onClick={() => onPick(f.name)}>
                {f.name}
              </button>
            </td>
            <td class="num">
              {f.self > 0 && (
                <>
                  {duration(f.self)} <span class="muted">{share(f.self, whole)}</span>
                </>
              )}
            </td>
            <td class="num">{duration(f.total)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface GraphsProps {
  tree: Tree; // as drawn
  straight: Tree; // outermost first
  picked: string;
  onPick: (name: string) => void;
}

function Graphs({ tree, straight, picked, onPick }: GraphsProps) {
  const app = useApp();
  const transforms = useView((v) => v.transforms);
  const search = useView((v) => v.search);
  const [node, setNode] = useState(-1);
  useEffect(() => setNode(-1), [tree]);
  const zoomPath = transforms.find((t) => t.kind === 'zoom')?.name;
  const zoomed = zoomPath ? nodeAt(tree, zoomPath) : 0;
  const sandwich = transforms.find((t) => t.kind === 'sandwich')?.name;
  const [above, below] = useMemo(
    () => (sandwich ? [callers(straight, sandwich), focus(straight, sandwich)] : [null, null]),
    [straight, sandwich],
  );
  const pickIn = (of: Tree) => (at: number) => {
    onPick(at > 0 ? of.functions[of.nodes[at].frame].name : '');
    if (of === tree) setNode(at);
  };
  if (above && below && sandwich)
    return (
      <>
        <p class="muted">Callers</p>
        <Graph
          tree={above}
          zoomed={nodeAt(above, sandwich)}
          search={search}
          label={`Callers of ${sandwich}`}
          onZoom={() => {}}
          onPick={pickIn(above)}
          picked={-1}
          upwards
          bare
        />
        <p class="muted">Callees</p>
        <Graph
          tree={below}
          zoomed={nodeAt(below, sandwich)}
          search={search}
          label={`Callees of ${sandwich}`}
          onZoom={() => {}}
          onPick={pickIn(below)}
          picked={-1}
          bare
        />
      </>
    );
  const zoom = (at: number): void => {
    const rest = transforms.filter((t) => t.kind !== 'zoom');
    app.view.set({ transforms: at > 0 ? [...rest, { kind: 'zoom', name: pathText(tree, at) }] : rest });
  };
  const shown =
    node >= 0 && node < tree.nodes.length && tree.functions[tree.nodes[node].frame].name === picked ? node : -1;
  return (
    <Graph
      tree={tree}
      zoomed={zoomed}
      search={search}
      label="Flame graph"
      onZoom={zoom}
      onPick={pickIn(tree)}
      picked={shown}
    />
  );
}

export function FlamePanel() {
  const app = useApp();
  const selection = useView((v) => v.selection);
  const weight = useView((v) => v.weight);
  const invert = useView((v) => v.invert);
  const baseline = useView((v) => v.baseline);
  const transforms = useView((v) => v.transforms);
  const [picked, setPicked] = useState('');
  const now = useAsync(() => app.trace.flame(selection, weight), [selection, weight]);
  const base = useAsync(async () => (baseline ? app.trace.flame(baseline, weight) : null), [baseline, weight]);
  // Inverted here, after the transforms: those are about callers and callees, whichever is drawn on top.
  const [straight, tree] = useMemo(() => {
    if (!now.value) return [null, null];
    const mine = applied(fromFlame(now.value), transforms);
    const other = base.value ? applied(fromFlame(base.value), transforms) : null;
    const turned = (one: Tree): Tree => (invert ? inverted(one) : one);
    return [mine, other ? difference(turned(mine), turned(other)) : turned(mine)];
  }, [now.value, base.value, transforms, invert]);
  const list = useMemo(() => (straight ? sums(straight) : []), [straight]);
  const kind = WEIGHTS.find((w) => w.id === weight) ?? WEIGHTS[0];
  const total = tree?.nodes[0].total ?? 0;
  return (
    <div class="flame-panel" aria-busy={now.loading}>
      <Toolbar picked={picked} />
      <WayBack />
      <p class="flame-sum" data-testid="flame-sum" data-ns={now.value ? now.value.total[0] : ''} aria-live="polite">
        {now.error && <span class="problem">{now.error}</span>}
        {tree && (
          <>
            <b>{duration(total)}</b> of {kind.what}, {count(tree.nodes[0].count)} stacks
            {isEmpty(selection) ? ', whole trace' : ', selection'}
            {tree.baseTotal > 0 && (
              <>
                ; compared with {duration(tree.baseTotal)}: <i class="dot part-1" /> more, <i class="dot part-0" />{' '}
                less, by share
              </>
            )}
          </>
        )}
      </p>
      <div class="flame-split">
        <div class="flame-scroll">
          {tree && straight && tree.nodes.length > 1 && (
            <Graphs tree={tree} straight={straight} picked={picked} onPick={setPicked} />
          )}
          {tree && tree.nodes.length === 1 && !now.loading && <Empty>{kind.none}</Empty>}
        </div>
        <div class="flame-table">
          {picked && now.value && <Lines flame={now.value} name={picked} />}
          {tree && tree.nodes.length > 1 && (
            <FunctionTable list={list} whole={total} onPick={setPicked} picked={picked} />
          )}
        </div>
      </div>
    </div>
  );
}
