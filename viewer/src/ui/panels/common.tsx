// SPDX-License-Identifier: Apache-2.0
// Small pieces that all panels use. Text from a trace only ever becomes a text node.
import type { ComponentChildren } from 'preact';
import { useApp, useAsync, useLoaded, useView } from '../context';
import { baseName, clock, duration, moment, share } from '../format';
import { go, goPoll, openItem, reveal } from '../actions';
import { PARTS, slotOf } from '../theme';
import type { App } from '../context';
import { all, many } from '../table';
import type { Row } from '../table';

export function Section({ title, note, children }: { title: string; note?: string; children: ComponentChildren }) {
  return (
    <section class="block">
      <h3>
        {title}
        {note && <small> {note}</small>}
      </h3>
      {children}
    </section>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** A moment, as the ruler shows it; a click brings it into view. */
export function Moment({ ns, toNs }: { ns: number; toNs?: number }) {
  const app = useApp();
  const wall = useView((v) => v.time) === 'wall';
  const unix = app.loaded.get().info.startUnixNs;
  if (Number.isNaN(ns)) return <span class="muted">not known</span>;
  return (
    <button class="link num" title="Show on the timeline" onClick={() => reveal(app, ns, toNs ?? ns + 1000)}>
      {wall && unix ? clock(ns, unix, 1e3) : moment(ns, 1e6)}
    </button>
  );
}

export function RowLink({ table, rowid, children }: { table: string; rowid: number; children: ComponentChildren }) {
  const app = useApp();
  return (
    <button class="link" onClick={() => void go(app, table, rowid)}>
      {children}
    </button>
  );
}

export function PollLink({ id, children }: { id: number; children: ComponentChildren }) {
  const app = useApp();
  return (
    <button class="link" onClick={() => void goPoll(app, id)}>
      {children}
    </button>
  );
}

export function TaskLink({ recording, task }: { recording: number; task: number }) {
  const app = useApp();
  if (Number.isNaN(task)) return <span class="muted">none</span>;
  return (
    <button class="link" onClick={() => openItem(app, { kind: 'task', recording, task })}>
      task {task}
    </button>
  );
}

export interface Piece {
  part: number;
  ns: number;
  title: string;
}

/** A length as a bar of its parts; the table below it says the same in words. */
export function PartsBar({ pieces, whole }: { pieces: Piece[]; whole: number }) {
  const words = pieces.map((p) => `${p.title}: ${duration(p.ns)}`).join(', ');
  return (
    <div class="parts-bar" role="img" aria-label={words}>
      {pieces
        .filter((p) => p.ns > 0)
        .map((p, i) => (
          <span
            key={i}
            class={`piece part-${p.part}`}
            style={{ width: `${(100 * p.ns) / Math.max(whole, 1)}%` }}
            title={`${p.title}: ${duration(p.ns)}, ${share(p.ns, whole)}`}
          />
        ))}
    </div>
  );
}

export function Dot({ part }: { part: number }) {
  return <i class={`dot part-${part}`} title={PARTS[part]} />;
}

let frames: { events: number; by: Promise<Map<number, Row[]>> } | null = null;

/** All frames by their stack, read once: the engine reads the table from the segments. */
function framesOf(app: App): Promise<Map<number, Row[]>> {
  const { events } = app.loaded.get().info;
  if (frames?.events === events) return frames.by;
  const columns = ['stack_id', 'depth', 'function', 'module', 'file', 'line', 'inlined'];
  const by = app.trace.rows('frame', columns).then((rows) => {
    const map = new Map<number, Row[]>();
    for (const row of all(app.trace, rows)) {
      const id = row.num('stack_id');
      const list = map.get(id);
      if (list) list.push(row);
      else map.set(id, [row]);
    }
    return map;
  });
  frames = { events, by };
  return by;
}

/** The frames of a stack, innermost first. */
export function Stack({ id, open }: { id: number; open?: boolean }) {
  const app = useApp();
  const { value, loading } = useAsync(async () => (await framesOf(app)).get(id) ?? [], [id]);
  if (loading && !value) return <p class="muted">…</p>;
  if (!value?.length) return <Empty>No stack was recorded.</Empty>;
  const sorted = [...value].sort((a, b) => a.num('depth') - b.num('depth'));
  const shown = open ? sorted : sorted.slice(0, 8);
  return (
    <ol class="stack">
      {shown.map((f, i) => (
        <li key={i} title={[f.str('module'), f.str('file')].filter(Boolean).join('\n')}>
          <code>{f.str('function')}</code>
          {f.num('inlined') === 1 && <small> inlined</small>}
          {f.has('file') && (
            <small class="muted">
              {' '}
              {baseName(f.str('file'))}:{f.str('line')}
            </small>
          )}
        </li>
      ))}
      {sorted.length > shown.length && <li class="muted">and {sorted.length - shown.length} callers</li>}
    </ol>
  );
}

/** Each label of a context, "key=value,key=value", selects all that carries it. */
export function Labels({ text }: { text: string }) {
  const app = useApp();
  const choose = (label: string): void => {
    const at = label.indexOf('=');
    const chosen = { key: at < 0 ? label : label.slice(0, at), value: at < 0 ? '' : label.slice(at + 1) };
    app.view.set({ selection: { label: chosen }, panel: 'flame' });
  };
  return (
    <>
      {text.split(',').map((label) => (
        <button key={label} class="link label" title={`Flame graph of all with ${label}`} onClick={() => choose(label)}>
          {label}
        </button>
      ))}
    </>
  );
}

/** So many locations have a colour of their own (theme.ts). */
const NAMED = 9;

/** What the colours of polls mean: parts of their time, or locations. */
export function Legend() {
  const app = useApp();
  const byLocation = useView((v) => v.colour === 'location');
  const whole = useLoaded((l) => l.info.complete !== false);
  const { value: names } = useAsync(
    async () => (byLocation && whole ? (await many(app.trace, 'location', ['name'], [], NAMED + 1)) : []),
    [byLocation, whole],
  );
  const shown = (names ?? []).slice(0, NAMED).map((row) => row.str('name'));
  return (
    <p class="muted legend" data-testid="legend">
      {(byLocation ? [] : PARTS).map((name, i) => (
        <span key={name}>
          <Dot part={i} />
          {name}
        </span>
      ))}
      {byLocation &&
        shown.map((name) => (
          <span key={name}>
            <i class={`dot cat-${slotOf(name)}`} />
            {name}
          </span>
        ))}
      {byLocation && (names?.length ?? 0) > NAMED && <span>and others</span>}
    </p>
  );
}
