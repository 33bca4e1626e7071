// SPDX-License-Identifier: Apache-2.0
// Colours of the canvases, read from the style sheet so that there is one list of them.

export const PARTS = ['on CPU', 'blocked', 'waiting', 'preempted', 'not measured'] as const;
const PART_VARS = ['--on-cpu', '--blocked', '--waiting', '--preempted', '--not-measured'];

export interface Theme {
  part: string[];
  location: string[];
  frames: string[];
  background: string;
  panel: string;
  line: string;
  grid: string;
  text: string;
  muted: string;
  accent: string;
  selection: string;
  park: string;
  loss: string;
  onBar: string;
  wake: string;
  behind: string;
  holder: string;
  delayed: string;
  font: string;
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string): string => style.getPropertyValue(name).trim();
  return {
    part: PART_VARS.map(get),
    location: Array.from({ length: 10 }, (_, i) => get(`--cat-${i}`)),
    frames: Array.from({ length: 6 }, (_, i) => get(`--frame-${i}`)),
    background: get('--background'),
    panel: get('--panel'),
    line: get('--line'),
    grid: get('--grid'),
    text: get('--text'),
    muted: get('--muted'),
    accent: get('--accent'),
    selection: get('--selection'),
    park: get('--park'),
    loss: get('--loss'),
    onBar: get('--on-bar'),
    wake: get('--wake'),
    behind: get('--blocked'),
    holder: get('--waiting'),
    delayed: get('--preempted'),
    font: '11px system-ui, sans-serif',
  };
}

/** A small number for a text, the same at every start. */
export function hash(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return (h ^ (h >>> 15)) >>> 0;
}

const OTHERS = 9;
const slots = new Map<string, number>([['others', OTHERS]]);

/** The colour of a name, 0 to 9: the first nine names differ from each other, the same name is always the same. */
export function slotOf(name: string): number {
  const known = slots.get(name);
  if (known !== undefined) return known;
  const used = new Set(slots.values());
  let slot = hash(name) % OTHERS;
  for (let i = 0; i < OTHERS && slots.size <= OTHERS && used.has(slot); i++) slot = (slot + 1) % OTHERS;
  slots.set(name, slot);
  return slot;
}

type Canvas2D = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;
const patterns = new Map<string, CanvasPattern | null>();

/** Stripes over a colour, so that parts differ without it: 1 blocked, 2 waiting, 3 preempted, 4 not measured. */
export function pattern(ctx: Canvas2D, kind: number, ink: string): CanvasPattern | null {
  const key = `${kind}${ink}`;
  const known = patterns.get(key);
  if (known !== undefined) return known;
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const c = tile.getContext('2d') as CanvasRenderingContext2D;
  c.strokeStyle = c.fillStyle = ink;
  c.lineWidth = 1.5;
  c.beginPath();
  if (kind === 2 || kind === 4)
    for (const d of [-8, 0, 8]) {
      c.moveTo(d, 8);
      c.lineTo(d + 8, 0);
    }
  if (kind === 3 || kind === 4)
    for (const d of [-8, 0, 8]) {
      c.moveTo(d, 0);
      c.lineTo(d + 8, 8);
    }
  c.stroke();
  if (kind === 1) c.fillRect(0, 0, 1.5, 8);
  const made = ctx.createPattern(tile, 'repeat');
  patterns.set(key, made);
  return made;
}
