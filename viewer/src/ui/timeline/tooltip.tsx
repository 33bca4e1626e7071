// SPDX-License-Identifier: Apache-2.0
// What is under the pointer, in words.
import { NONE } from '../../api';
import type { App } from '../context';
import { clock, count, duration, moment, share } from '../format';
import { PARTS } from '../theme';
import type { TimelineCanvas } from './canvas';
import { MAP_H } from './head';
import { boxAt } from './layout';
import { lengthOf } from './lod';
import { chartText, readingAt } from './overlay';

export interface Tip {
  x: number;
  y: number;
  title: string;
  lines: string[];
  kind: number; // part for the colour of the dot, -1: none
}

const WORDS: Record<string, string> = {
  poll: 'poll',
  park: 'parked: nothing to do',
  wait: 'wait',
  offcpu: 'off the CPU',
  context: 'context',
  event: 'event of the program',
  stuck: 'the watchdog found this poll running',
  loss: 'lost',
  flame: 'samples',
};

function chartTip(t: TimelineCanvas, name: string, title: string, x: number): string[] {
  const chart = t.charts.get(name);
  const at = chart && readingAt(chart, t.ns(x));
  if (!at || Number.isNaN(at.max)) return [`${title}: no reading here`];
  const { series, min, max, mean } = at;
  const range = min === max ? '' : ` (${chartText(series, min)} to ${chartText(series, max)})`;
  return [`${chartText(series, mean)}${range}`];
}

export function describe(app: App, t: TimelineCanvas, x: number, y: number): Tip | null {
  const view = app.view.get();
  const { info } = app.loaded.get();
  const step = (view.toNs - view.fromNs) / t.width;
  const wall = view.time === 'wall' && info.startUnixNs > 0;
  const time = (ns: number): string => (wall ? clock(ns, info.startUnixNs, step) : moment(ns, step));
  const place = t.lanes.getBoundingClientRect();
  const at = { x: place.left + x, y: place.top + y };
  const box = boxAt(t.boxes.boxes, y + t.body.scrollTop);
  if (box?.kind === 'chart')
    return { ...at, title: box.title, lines: [...chartTip(t, box.name, box.title, x), time(t.ns(x))], kind: -1 };
  const found = t.at(x, y);
  if (!found || found[0].layer === 'park') {
    const counted = box?.kind === 'lane' ? t.countedAt(box.lane.threadId, t.ns(x)) : undefined;
    if (counted && y + t.body.scrollTop < box!.y + 26)
      return {
        ...at,
        title: `${count(counted.polls)} short polls, counted`,
        lines: [
          `from ${time(counted.fromNs)} to ${time(counted.toNs)}, not recorded one by one`,
          ...(Number.isNaN(counted.parkedNs)
            ? []
            : [`parked for ${share(counted.parkedNs, counted.toNs - counted.fromNs)} of it`]),
        ],
        kind: 4,
      };
  }
  const off = box?.kind === 'lane' ? box.strips.find((b) => b.layer === 'offcpu') : undefined;
  const inOff = off && y + t.body.scrollTop - box!.y >= off.y && y + t.body.scrollTop - box!.y < off.y + off.h;
  if (!found && inOff && t.lossesAt(t.ns(x)).some((l) => l.reason === 'context switches'))
    return {
      ...at,
      title: 'off CPU: not known here',
      lines: ['context switches were not recorded, to save CPU time'],
      kind: 4,
    };
  if (!found) return null;
  const [hit, i] = found;
  const s = hit.slices;
  const src = hit.rects.src[i];
  const label = s.label[src] === NONE ? '' : (app.trace.strings[s.label[src]] ?? '');
  const lines: string[] = [];
  const ns = lengthOf(s, src);
  if (ns > 0) lines.push(duration(ns) + (hit.layer === 'poll' ? `, mostly ${PARTS[s.kind[src]] ?? ''}` : ''));
  if (hit.layer === 'wait' || hit.layer === 'offcpu') lines.push(PARTS[s.kind[src]] ?? '');
  lines.push(`${hit.box.lane.name}, ${time(s.beginNs[src])}`);
  if (hit.rects.count[i] > 1) lines.push(`the longest of ${count(hit.rects.count[i])} here: zoom in for the others`);
  const coloured = hit.layer === 'poll' || hit.layer === 'wait' || hit.layer === 'offcpu';
  const title = hit.layer === 'poll' && label ? label : [WORDS[hit.layer], label].filter(Boolean).join(': ');
  return { ...at, title, lines, kind: coloured ? s.kind[src] : -1 };
}

/** On the ruler: the moment, and what is missing there. */
export function describeHead(app: App, t: TimelineCanvas, x: number, y: number): Tip | null {
  if (y < MAP_H) return null;
  const box = t.head.getBoundingClientRect();
  const { info } = app.loaded.get();
  const ns = t.ns(x);
  const lines = t
    .lossesAt(ns)
    .map((l) => `not recorded in full from ${moment(l.fromNs)} to ${moment(l.toNs)}: ${l.reason}`);
  if (info.startUnixNs) lines.unshift(`${clock(ns, info.startUnixNs, 1e3)} UTC`);
  return { x: box.left + x, y: box.top + y, title: moment(ns, t.ns(1) - t.ns(0)), lines, kind: -1 };
}

export function Tooltip({ tip }: { tip: Tip }) {
  const right = tip.x > window.innerWidth - 320;
  const low = tip.y > window.innerHeight - 120;
  const style = {
    left: right ? 'auto' : `${tip.x + 14}px`,
    right: right ? `${window.innerWidth - tip.x + 14}px` : 'auto',
    top: low ? 'auto' : `${tip.y + 14}px`,
    bottom: low ? `${window.innerHeight - tip.y + 14}px` : 'auto',
  };
  return (
    <div class="tooltip" style={style} role="presentation">
      <div class="tip-title">
        {tip.kind >= 0 && <i class={`dot part-${tip.kind}`} />}
        {tip.title}
      </div>
      {tip.lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}
