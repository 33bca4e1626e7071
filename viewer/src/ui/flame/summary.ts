// SPDX-License-Identifier: Apache-2.0
// The heaviest places of a flame graph that is not inverted.
import type { Flame } from '../../api';

export type FlameFrame = Flame['frames'][number];

/** The function with most time of its own; '' when there is none. */
export function topFunction(flame: Flame): string {
  const self = new Map<string, number>();
  for (let i = 1; i < flame.parent.length; i++) {
    if (!flame.self[i]) continue;
    const { name } = flame.frames[flame.frame[i]];
    self.set(name, (self.get(name) ?? 0) + flame.self[i]);
  }
  let best = '';
  for (const [name, ns] of self) if (best === '' || ns > (self.get(best) ?? 0)) best = name;
  return best;
}

/** The stacks with most time, each innermost first. */
export function topStacks(flame: Flame, most: number): { ns: number; frames: FlameFrame[] }[] {
  const ends: number[] = [];
  for (let i = 1; i < flame.parent.length; i++) if (flame.self[i] > 0) ends.push(i);
  ends.sort((a, b) => flame.self[b] - flame.self[a]);
  return ends.slice(0, most).map((end) => {
    const frames: FlameFrame[] = [];
    for (let at = end; at > 0; at = flame.parent[at]) frames.push(flame.frames[flame.frame[at]]);
    return { ns: flame.self[end], frames };
  });
}
