// SPDX-License-Identifier: Apache-2.0
// Everything that can be done by a key or from the palette, once: help, palette and keys are made from this list.
import { escape, focus, mark, pan, panel, showAll, step, stepLong, zoom } from './actions';
import type { App } from './context';
import { PANELS, defaults } from './state';
import type { Panel } from './state';

export interface Command {
  keys: string[]; // as KeyboardEvent.key, with "Ctrl+Shift+" in front
  name: string;
  group: 'Move' | 'Select' | 'Find' | 'Show' | 'Panels';
  run: (app: App) => void;
}

export const PANEL_NAMES: Record<Panel, string> = {
  flame: 'Flame graph',
  polls: 'Polls',
  delays: 'Delays',
  locations: 'Locations',
  histogram: 'Histogram',
  locks: 'Locks',
  waits: 'Waits',
  descriptors: 'Descriptors',
  functions: 'Functions',
  threads: 'Threads',
  tables: 'Tables',
  sql: 'SQL',
};

function focusSearch(): void {
  const box = document.getElementById('search') as HTMLInputElement | null;
  box?.focus();
  box?.select();
}

function nextTheme(app: App): void {
  const { dark } = app.loaded.get();
  app.view.set({ theme: dark ? 'light' : 'dark' });
}

export const COMMANDS: Command[] = [
  { keys: ['w', 'ArrowUp'], name: 'Zoom in', group: 'Move', run: (app) => zoom(app, 0.75) },
  { keys: ['s', 'ArrowDown'], name: 'Zoom out', group: 'Move', run: (app) => zoom(app, 1 / 0.75) },
  { keys: ['a', 'ArrowLeft'], name: 'Earlier', group: 'Move', run: (app) => pan(app, -0.2) },
  { keys: ['d', 'ArrowRight'], name: 'Later', group: 'Move', run: (app) => pan(app, 0.2) },
  { keys: ['f'], name: 'Centre what is selected, then fit it', group: 'Move', run: focus },
  { keys: ['0'], name: 'Whole trace', group: 'Move', run: showAll },
  { keys: ['n'], name: 'Next long poll', group: 'Select', run: (app) => void stepLong(app, 1) },
  { keys: ['p'], name: 'Previous long poll', group: 'Select', run: (app) => void stepLong(app, -1) },
  { keys: ['.'], name: 'Next on this lane', group: 'Select', run: (app) => void step(app, 1) },
  { keys: [','], name: 'Previous on this lane', group: 'Select', run: (app) => void step(app, -1) },
  { keys: ['m'], name: 'Set or remove a mark', group: 'Select', run: mark },
  { keys: ['Escape'], name: 'Back: close, deselect', group: 'Select', run: escape },
  { keys: ['/'], name: 'Find', group: 'Find', run: focusSearch },
  {
    keys: ['Ctrl+Shift+P'],
    name: 'All commands',
    group: 'Find',
    run: (app) => app.loaded.set({ overlay: 'palette' }),
  },
  { keys: ['?'], name: 'Keys', group: 'Find', run: (app) => app.loaded.set({ overlay: 'help' }) },
  {
    keys: ['c'],
    name: 'Colour polls by part or by location',
    group: 'Show',
    run: (app) => app.view.set({ colour: app.view.get().colour === 'part' ? 'location' : 'part' }),
  },
  {
    keys: ['t'],
    name: 'Relative or wall-clock time',
    group: 'Show',
    run: (app) => app.view.set({ time: app.view.get().time === 'relative' ? 'wall' : 'relative' }),
  },
  { keys: [], name: 'Dark or light', group: 'Show', run: nextTheme },
  {
    keys: [],
    name: 'Colours as the system has them',
    group: 'Show',
    run: (app) => app.view.set({ theme: 'auto' }),
  },
  { keys: [], name: 'Remove all marks', group: 'Show', run: (app) => app.view.set({ marks: [] }) },
  {
    keys: [],
    name: 'Deselect everything',
    group: 'Select',
    run: (app) => app.view.set({ selection: {}, item: null }),
  },
  {
    keys: [],
    name: 'Unfold all lanes and groups',
    group: 'Show',
    run: (app) => app.view.set({ collapsed: [], pinned: [], laneFilter: '' }),
  },
  {
    keys: [],
    name: 'Start over: everything as at first',
    group: 'Show',
    run: (app) => {
      const { info } = app.loaded.get();
      app.view.set(defaults(info.fromNs, info.toNs));
    },
  },
  ...PANELS.map((name, i): Command => {
    const keys = i < 9 ? [String(i + 1)] : [];
    return { keys, name: PANEL_NAMES[name], group: 'Panels', run: (app) => panel(app, name) };
  }),
];

/** How a key is written for people. */
export function keyName(key: string): string {
  const arrows: Record<string, string> = {
    ArrowUp: '↑',
    ArrowDown: '↓',
    ArrowLeft: '←',
    ArrowRight: '→',
    Escape: 'Esc',
  };
  return arrows[key] ?? key;
}
