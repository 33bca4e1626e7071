// SPDX-License-Identifier: Apache-2.0
// From key presses to commands. Keys that move are by their place on the keyboard, so that WASD is in the same place on
// AZERTY and Dvorak; the others by what they write.
import { COMMANDS } from './commands';
import type { Command } from './commands';
import type { App } from './context';

const PLACES: Record<string, string> = { KeyW: 'w', KeyA: 'a', KeyS: 's', KeyD: 'd' };
const MOVES = new Set(['w', 'a', 's', 'd']);

export interface Press {
  key: string;
  code: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  shiftKey: boolean;
}

export function commandFor(press: Press): Command | undefined {
  if (press.altKey) return undefined;
  if (press.ctrlKey || press.metaKey) {
    const name = `Ctrl+${press.shiftKey ? 'Shift+' : ''}${press.key.toUpperCase()}`;
    return COMMANDS.find((c) => c.keys.includes(name));
  }
  const moved = PLACES[press.code];
  if (moved) return COMMANDS.find((c) => c.keys.includes(moved));
  const key = press.key.length === 1 ? press.key.toLowerCase() : press.key;
  if (MOVES.has(key)) return undefined;
  return COMMANDS.find((c) => c.keys.includes(key));
}

/** Whether a key belongs to what has the focus: a text box, a list of choices, a scrolled table. */
function typing(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (key === 'Escape') return false;
  if (target.closest('input, textarea, select, [contenteditable], dialog, [role=dialog]')) return true;
  if ((key === 'ArrowUp' || key === 'ArrowDown') && target.closest('.side, .grid-scroll, .tabs')) return true;
  return false;
}

export function listenKeys(app: App): () => void {
  const down = (event: KeyboardEvent): void => {
    const command = commandFor(event);
    if (!command || event.defaultPrevented) return;
    if (typing(event.target, event.key) && !event.ctrlKey) return;
    if (app.loaded.get().overlay && event.key !== 'Escape' && !event.ctrlKey) return; // what is below it does not move
    if (event.key === 'Escape' && event.target instanceof HTMLInputElement) event.target.blur();
    command.run(app);
    event.preventDefault();
  };
  document.addEventListener('keydown', down);
  return () => document.removeEventListener('keydown', down);
}
