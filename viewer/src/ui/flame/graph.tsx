// SPDX-License-Identifier: Apache-2.0
// One flame graph on a canvas: hover, click to zoom, arrow keys to walk.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useLoaded } from '../context';
import { duration, share } from '../format';
import { hash, readTheme } from '../theme';
import type { Theme } from '../theme';
import { fitted } from '../timeline/draw';
import { ROW_H, flameRects, neighbour, rectAt } from './layout';
import type { FlameRect } from './layout';
import type { Tree } from './transform';

interface Props {
  tree: Tree;
  zoomed: number;
  search: string;
  label: string;
  onZoom: (node: number) => void;
  onPick: (node: number) => void;
  picked: number;
  upwards?: boolean;
  bare?: boolean; // without what is above the node that is zoomed to
}

/** Change of share against the base: -1 only there, 1 only here. */
export function change(tree: Tree, node: number): number {
  const now = tree.nodes[0].total ? tree.nodes[node].total / tree.nodes[0].total : 0;
  const was = tree.baseTotal ? tree.nodes[node].baseTotal / tree.baseTotal : 0;
  return now + was > 0 ? (now - was) / (now + was) : 0;
}

function colourOf(tree: Tree, node: number, theme: Theme): [string, number] {
  if (tree.baseTotal) {
    const by = change(tree, node);
    if (Math.abs(by) < 0.02) return [theme.frames[5], 1];
    return [by > 0 ? theme.part[1] : theme.part[0], 0.25 + 0.75 * Math.min(1, Math.abs(by))];
  }
  if (node === 0) return [theme.frames[5], 1];
  return [theme.frames[hash(tree.functions[tree.nodes[node].frame].name) % 5], 1];
}

function paint(
  canvas: HTMLCanvasElement,
  p: Props,
  rects: FlameRect[],
  rows: number,
  width: number,
  hovered: number,
): void {
  const theme = readTheme();
  const dpr = Math.min(2, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * dpr);
  canvas.height = Math.round(rows * ROW_H * dpr);
  canvas.style.height = `${rows * ROW_H}px`;
  const ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
  ctx.scale(dpr, dpr);
  ctx.font = theme.font;
  const wanted = p.search.toLowerCase();
  for (const r of rects) {
    const name = p.tree.functions[p.tree.nodes[r.node].frame].name;
    const x = r.x0 * width;
    const w = Math.max(1, (r.x1 - r.x0) * width - 1);
    const y = (p.upwards ? rows - 1 - r.row : r.row) * ROW_H;
    const found = wanted !== '' && name.toLowerCase().includes(wanted);
    const [colour, alpha] = colourOf(p.tree, r.node, theme);
    ctx.globalAlpha = wanted && !found ? alpha * 0.35 : alpha;
    ctx.fillStyle = colour;
    ctx.fillRect(x, y, w, ROW_H - 1);
    ctx.globalAlpha = 1;
    if (found || r.node === hovered || r.node === p.picked) {
      ctx.strokeStyle = found ? theme.accent : theme.text;
      ctx.lineWidth = r.node === p.picked ? 2 : 1.25;
      ctx.strokeRect(x + 0.75, y + 0.75, Math.max(1, w - 1.5), ROW_H - 2.5);
    }
    const text = fitted(name, w);
    ctx.fillStyle = theme.text;
    if (text) ctx.fillText(text, x + 4, y + 12.5);
  }
}

export function words(tree: Tree, node: number): string {
  const n = tree.nodes[node];
  const name = tree.functions[n.frame].name;
  const base = tree.baseTotal ? `; before ${duration(n.baseTotal)}, ${share(n.baseTotal, tree.baseTotal)}` : '';
  return `${name}: ${duration(n.total)}, ${share(n.total, tree.nodes[0].total)}; itself ${duration(n.self)}${base}`;
}

export function Graph(p: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(600);
  const [hovered, setHovered] = useState<{ node: number; x: number; y: number } | null>(null);
  const dark = useLoaded((l) => l.dark);
  const { rects, rows } = useMemo(() => flameRects(p.tree, p.zoomed, 0.7 / width, p.bare), [p.tree, p.zoomed, width]);
  useEffect(() => {
    const parent = canvas.current?.parentElement;
    if (!parent) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(50, parent.clientWidth)));
    watch.observe(parent);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (canvas.current) paint(canvas.current, p, rects, rows, width, hovered?.node ?? -1);
  });
  const under = (e: MouseEvent): FlameRect | undefined => {
    const y = Math.floor(e.offsetY / ROW_H);
    return rectAt(rects, e.offsetX / width, p.upwards ? rows - 1 - y : y);
  };
  void dark;
  return (
    <div class="graph">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={`${p.label}. ${words(p.tree, p.picked >= 0 ? p.picked : p.zoomed)}`}
        onMouseMove={(e) => {
          const r = under(e);
          setHovered(r ? { node: r.node, x: e.clientX, y: e.clientY } : null);
        }}
        onMouseLeave={() => setHovered(null)}
        onClick={(e) => {
          const r = under(e);
          if (r) p.onPick(r.node);
        }}
        onDblClick={(e) => {
          const r = under(e);
          if (r) p.onZoom(r.node);
        }}
        onKeyDown={(e) => {
          if (e.key.startsWith('Arrow')) {
            p.onPick(neighbour(p.tree, Math.max(0, p.picked >= 0 ? p.picked : p.zoomed), e.key));
            e.preventDefault();
            e.stopPropagation();
          } else if (e.key === 'Enter' && p.picked >= 0) {
            p.onZoom(p.picked);
            e.stopPropagation();
          }
        }}
      />
      {hovered && (
        <div
          class="tooltip"
          style={{
            left: hovered.x > innerWidth - 340 ? 'auto' : `${hovered.x + 14}px`,
            right: hovered.x > innerWidth - 340 ? `${innerWidth - hovered.x + 14}px` : 'auto',
            bottom: `${innerHeight - hovered.y + 14}px`,
          }}
        >
          <div class="tip-title">{p.tree.functions[p.tree.nodes[hovered.node].frame].name}</div>
          <div>{words(p.tree, hovered.node).split(': ').slice(1).join(': ')}</div>
          <div class="muted">{p.tree.functions[p.tree.nodes[hovered.node].frame].module}</div>
        </div>
      )}
    </div>
  );
}
