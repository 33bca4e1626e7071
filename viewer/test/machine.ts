// SPDX-License-Identifier: Apache-2.0
// What tests need of the machine: the command, the module, segments.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Session } from '../src/engine/session.ts';
import type { MemoryFile } from '../src/engine/wasi.ts';

export const build = path.resolve(process.env.WEFT_BUILD ?? 'build/release');
export const source = path.resolve(process.env.WEFT_SOURCE ?? '.');
export const weftPath = path.join(build, 'weft');

/** Output of the command, in a directory. It may say that something could not be read in full. */
export function weft(cwd: string, ...args: string[]): string {
  try {
    const stdio = ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'];
    return execFileSync(weftPath, args, { cwd, encoding: 'utf8', maxBuffer: 1 << 28, stdio });
  } catch (error) {
    const failed = error as { status: number; stdout: string; stderr: string };
    if (failed.status === 3) return failed.stdout;
    throw new Error(`weft ${args.join(' ')}: status ${failed.status}: ${failed.stderr}`);
  }
}

export function query(cwd: string, paths: string[], sql: string): Record<string, number | string | null>[] {
  const text = weft(cwd, 'query', '--json', '--no-symbols', ...paths, sql);
  return JSON.parse(text) as Record<string, number | string | null>[];
}

let module: WebAssembly.Module | null = null;

export async function newSession(): Promise<Session> {
  module ??= await WebAssembly.compile(fs.readFileSync(path.join(build, 'viewer/weft.wasm')));
  return Session.make(module, () => {});
}

export function segments(directory: string): MemoryFile[] {
  return fs
    .readdirSync(directory)
    .filter((name) => /\.weft(\.active)?$/.test(name))
    .sort()
    .map((name) => ({ name, bytes: new Uint8Array(fs.readFileSync(path.join(directory, name))) }));
}
