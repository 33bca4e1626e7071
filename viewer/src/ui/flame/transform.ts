// SPDX-License-Identifier: Apache-2.0
// What can be done to a flame graph: merge lines into functions, focus, merge, drop, sandwich, difference. Every one
// makes a new tree from the stacks of the old one. Sums stay what the engine counted: no sample is counted twice.
import type { Flame } from '../../api';
import type { Transform } from '../state';

export interface Node {
  parent: number;
  frame: number;
  total: number;
  self: number;
  count: number;
  depth: number;
  children: number[];
  /** The same path in the selection that it is compared with. */
  baseTotal: number;
}

export interface Fn {
  name: string;
  module: string;
}

export interface Tree {
  nodes: Node[];
  functions: Fn[];
  /** Of the base of a difference; 0: there is none. */
  baseTotal: number;
}

export const PATH = '\u0001';

class Builder {
  tree: Tree = { nodes: [], functions: [], baseTotal: 0 };
  private ids = new Map<string, number>();
  private kids = new Map<string, number>();

  constructor(root: Fn) {
    this.fn(root);
    this.tree.nodes.push(blank(-1, 0, 0));
  }
  fn(f: Fn): number {
    const key = `${f.name}${PATH}${f.module}`;
    let id = this.ids.get(key);
    if (id === undefined) {
      id = this.tree.functions.push({ name: f.name, module: f.module }) - 1;
      this.ids.set(key, id);
    }
    return id;
  }
  child(parent: number, f: Fn): number {
    const frame = this.fn(f);
    const key = `${parent}/${frame}`;
    let at = this.kids.get(key);
    if (at === undefined) {
      const { nodes } = this.tree;
      at = nodes.push(blank(parent, frame, nodes[parent].depth + 1)) - 1;
      nodes[parent].children.push(at);
      this.kids.set(key, at);
    }
    return at;
  }
  /** Adds a stack, outermost first. */
  add(path: Fn[], ns: number, count: number, base = false): void {
    const { nodes } = this.tree;
    let at = 0;
    const put = (i: number): void => {
      if (base) nodes[i].baseTotal += ns;
      else {
        nodes[i].total += ns;
        nodes[i].count += count;
      }
    };
    put(0);
    for (const f of path) {
      at = this.child(at, f);
      put(at);
    }
    if (!base) nodes[at].self += ns;
  }
  done(): Tree {
    const { nodes } = this.tree;
    const weight = (i: number): number => Math.max(nodes[i].total, nodes[i].baseTotal);
    for (const node of nodes) node.children.sort((a, b) => weight(b) - weight(a));
    this.tree.baseTotal = nodes[0].baseTotal;
    return this.tree;
  }
}

function blank(parent: number, frame: number, depth: number): Node {
  return { parent, frame, total: 0, self: 0, count: 0, depth, children: [], baseTotal: 0 };
}

/** The stack that ends at a node, outermost first, without the root. */
export function pathOf(tree: Tree, at: number): Fn[] {
  const path: Fn[] = [];
  for (let i = at; i > 0; i = tree.nodes[i].parent) path.push(tree.functions[tree.nodes[i].frame]);
  return path.reverse();
}

/** Samples that end at a node: its count without its children's. */
function ownCount(tree: Tree, i: number): number {
  return tree.nodes[i].count - tree.nodes[i].children.reduce((sum, c) => sum + tree.nodes[c].count, 0);
}

function each(tree: Tree, visit: (path: Fn[], ns: number, count: number) => void): void {
  for (let i = 0; i < tree.nodes.length; i++) {
    const { self } = tree.nodes[i];
    if (self > 0) visit(pathOf(tree, i), self, ownCount(tree, i));
  }
}

/** The engine's tree with frames of one function together, whatever their lines are. */
export function fromFlame(flame: Flame): Tree {
  const b = new Builder({ name: 'all', module: '' });
  const { nodes } = b.tree;
  const to = new Int32Array(flame.parent.length);
  nodes[0].total = flame.total[0] ?? 0;
  nodes[0].self = flame.self[0] ?? 0;
  nodes[0].count = flame.count[0] ?? 0;
  for (let i = 1; i < flame.parent.length; i++) {
    const at = b.child(to[flame.parent[i]], flame.frames[flame.frame[i]]);
    to[i] = at;
    nodes[at].total += flame.total[i];
    nodes[at].self += flame.self[i];
    nodes[at].count += flame.count[i];
  }
  return b.done();
}

function rebuilt(tree: Tree, change: (path: Fn[]) => Fn[] | null): Tree {
  const b = new Builder(tree.functions[0]);
  each(tree, (path, ns, count) => {
    const to = change(path);
    if (to) b.add(to, ns, count);
  });
  return b.done();
}

/** Only what happens in a function: it becomes the outermost frame. */
export function focus(tree: Tree, name: string): Tree {
  return rebuilt(tree, (path) => {
    const at = path.findIndex((f) => f.name === name);
    return at < 0 ? null : path.slice(at);
  });
}

/** A function's own time becomes its callers'. */
export function merge(tree: Tree, name: string): Tree {
  return rebuilt(tree, (path) => path.filter((f) => f.name !== name));
}

/** Without the stacks that a function is in. */
export function drop(tree: Tree, name: string): Tree {
  return rebuilt(tree, (path) => (path.some((f) => f.name === name) ? null : path));
}

/** Innermost first. */
export function invert(tree: Tree): Tree {
  return rebuilt(tree, (path) => [...path].reverse());
}

/** Who calls a function: it first, then its callers outwards. */
export function callers(tree: Tree, name: string): Tree {
  return rebuilt(tree, (path) => {
    const at = path.map((f) => f.name).lastIndexOf(name);
    return at < 0 ? null : path.slice(0, at + 1).reverse();
  });
}

/** The node at the end of a path of names; 0 when there is none. */
export function nodeAt(tree: Tree, path: string): number {
  let at = 0;
  for (const name of path.split(PATH)) {
    const next = tree.nodes[at].children.find((c) => tree.functions[tree.nodes[c].frame].name === name);
    if (next === undefined) return 0;
    at = next;
  }
  return at;
}

export function pathText(tree: Tree, at: number): string {
  return pathOf(tree, at)
    .map((f) => f.name)
    .join(PATH);
}

/** Both trees in one: what is only in the base has a total of 0, so that removed paths are seen. */
export function difference(tree: Tree, base: Tree): Tree {
  const b = new Builder(tree.functions[0]);
  each(tree, (path, ns, count) => b.add(path, ns, count));
  each(base, (path, ns, count) => b.add(path, ns, count, true));
  return b.done();
}

export function applied(tree: Tree, transforms: Transform[]): Tree {
  let now = tree;
  for (const { kind, name } of transforms) {
    if (kind === 'focus') now = focus(now, name);
    else if (kind === 'merge') now = merge(now, name);
    else if (kind === 'drop') now = drop(now, name);
  }
  return now;
}

export interface FnSum {
  name: string;
  module: string;
  self: number;
  total: number;
  count: number;
  baseTotal: number;
}

/** Each function once: its own time, and the time of all stacks that have it, however often. */
export function sums(tree: Tree): FnSum[] {
  const out = tree.functions.map(({ name, module }): FnSum => ({
    name,
    module,
    self: 0,
    total: 0,
    count: 0,
    baseTotal: 0,
  }));
  const onPath = new Uint32Array(out.length);
  const visit = (at: number): void => {
    const node = tree.nodes[at];
    const sum = out[node.frame];
    sum.self += node.self;
    if (onPath[node.frame]++ === 0) {
      sum.total += node.total;
      sum.count += node.count;
      sum.baseTotal += node.baseTotal;
    }
    for (const child of node.children) visit(child);
    onPath[node.frame]--;
  };
  visit(0);
  return out.slice(1).sort((a, b) => b.self - a.self || b.total - a.total);
}

export interface LineSum {
  file: string;
  line: number;
  self: number;
  total: number;
}

/** Where in a function the time is, by source line, from the engine's tree, which has lines. */
export function lines(flame: Flame, name: string): LineSum[] {
  const out = new Map<string, LineSum>();
  for (let i = 1; i < flame.parent.length; i++) {
    const f = flame.frames[flame.frame[i]];
    if (f.name !== name || !f.file) continue;
    const key = `${f.file}:${f.line}`;
    let sum = out.get(key);
    if (!sum) out.set(key, (sum = { file: f.file, line: f.line, self: 0, total: 0 }));
    sum.self += flame.self[i];
    sum.total += flame.total[i];
  }
  return [...out.values()].sort((a, b) => b.total - a.total);
}
