// SPDX-License-Identifier: Apache-2.0
// Rectangles of a flame graph, from a node that fills the width.
import type { Tree } from './transform';

export interface FlameRect {
  node: number;
  x0: number; // share of the width
  x1: number;
  row: number;
}

export const ROW_H = 18;

/** Of a difference the larger share of both counts, so that neither side hides what the other has. */
export function weightOf(tree: Tree, at: number): number {
  const whole = tree.nodes[0].total;
  const scale = tree.baseTotal > 0 && whole > 0 ? whole / tree.baseTotal : 1;
  return Math.max(tree.nodes[at].total, tree.nodes[at].baseTotal * scale);
}

/** Ancestors of `zoomed` are as wide as it is; what is narrower than `least` of the width is left out.
 * `bare`: without them. */
export function flameRects(
  tree: Tree, zoomed: number, least: number, bare = false,
): { rects: FlameRect[]; rows: number } {
  const rects: FlameRect[] = [];
  const above: number[] = [];
  for (let at = tree.nodes[zoomed].parent; at >= 0 && !bare; at = tree.nodes[at].parent) above.push(at);
  above.reverse().forEach((node, row) => rects.push({ node, x0: 0, x1: 1, row }));
  let rows = above.length;
  const place = (node: number, x0: number, x1: number, row: number): void => {
    rects.push({ node, x0, x1, row });
    rows = Math.max(rows, row + 1);
    // Of a difference children may have more together than their parent: removed ones stand beside new ones.
    const together = tree.nodes[node].children.reduce((sum, child) => sum + weightOf(tree, child), 0);
    const whole = Math.max(weightOf(tree, node), together);
    let left = x0;
    for (const child of tree.nodes[node].children) {
      const w = whole > 0 ? ((x1 - x0) * weightOf(tree, child)) / whole : 0;
      if (w >= least) place(child, left, Math.min(x1, left + w), row + 1);
      left += w;
    }
  };
  place(zoomed, 0, 1, above.length);
  return { rects, rows };
}

export function rectAt(rects: FlameRect[], x: number, row: number): FlameRect | undefined {
  return rects.find((r) => r.row === row && x >= r.x0 && x < r.x1);
}

/** For the arrow keys: the parent, the heaviest child, the neighbours. */
export function neighbour(tree: Tree, at: number, key: string): number {
  const node = tree.nodes[at];
  if (key === 'ArrowUp') return node.parent < 0 ? at : node.parent;
  if (key === 'ArrowDown') return node.children[0] ?? at;
  if (node.parent < 0) return at;
  const all = tree.nodes[node.parent].children;
  const next = all.indexOf(at) + (key === 'ArrowRight' ? 1 : -1);
  return all[Math.max(0, Math.min(all.length - 1, next))];
}
