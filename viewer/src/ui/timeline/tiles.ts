// SPDX-License-Identifier: Apache-2.0
// Series in tiles on a grid of powers of two: panning asks for nothing that was asked for before, and zooming only when
// a power of two is passed.
import type { Series, Trace } from '../../api';

export const TILE = 128; // samples of a tile
const MOST = 600; // tiles that are kept

/** The step of samples that are two to four pixels wide. */
export function stepOf(nsPerPx: number): number {
  return Math.pow(2, Math.ceil(Math.log2(Math.max(nsPerPx, 1e-3) * 2)));
}

export class Tiles {
  private kept = new Map<string, Series>();
  private events = -1;

  constructor(private trace: Trace) {}

  /** The tiles between two moments, in order. */
  over(name: string, fromNs: number, toNs: number, stepNs: number): Series[] {
    if (this.trace.info.events !== this.events) this.kept.clear();
    this.events = this.trace.info.events;
    const span = TILE * stepNs;
    const out: Series[] = [];
    for (let i = Math.floor(fromNs / span); i * span < toNs; i++) out.push(this.tile(name, i, span));
    return out;
  }

  private tile(name: string, i: number, span: number): Series {
    const key = `${name}/${i}/${span}`;
    let found = this.kept.get(key);
    if (found) {
      this.kept.delete(key); // to the end: the oldest are dropped first
    } else {
      found = this.trace.series(name, null, i * span, (i + 1) * span, TILE);
      if (this.kept.size >= MOST) this.kept.delete(this.kept.keys().next().value as string);
    }
    this.kept.set(key, found);
    return found;
  }
}
