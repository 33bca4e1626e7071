// SPDX-License-Identifier: Apache-2.0
// The bar above: what is open, search, and the switches of the page.
import { useEffect, useRef } from 'preact/hooks';
import { showAll } from './actions';
import { useApp, useLoaded, useView } from './context';
import { count, duration } from './format';
import { search, walk } from './search';

function Search() {
  const app = useApp();
  const text = useView((v) => v.search);
  const matches = useLoaded((l) => l.matches);
  const match = useLoaded((l) => l.match);
  const searching = useLoaded((l) => l.searching);
  const running = useRef<Promise<void> | null>(null);
  useEffect(() => {
    let current = true;
    if (!text.trim()) {
      app.loaded.set({ matches: [], match: -1, searching: false });
      return;
    }
    app.loaded.set({ searching: true });
    const timer = setTimeout(() => {
      running.current = search(app, text).then((found) => {
        if (current) app.loaded.set({ matches: found, match: -1, searching: false });
      });
    }, 120);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text]);
  return (
    <div class="search" role="search">
      <input
        id="search"
        type="search"
        placeholder="Find locations, functions, locks, tasks, spans"
        aria-label="Find in the trace"
        value={text}
        onInput={(e) => app.view.set({ search: e.currentTarget.value })}
        onKeyDown={(e) => {
          if (e.key !== 'Enter') return;
          e.preventDefault();
          e.stopPropagation();
          void walk(app, e.shiftKey ? -1 : 1);
        }}
      />
      {text && (
        <span class="matches" aria-live="polite" data-testid="matches">
          {searching
            ? '…'
            : matches.length
              ? `${match >= 0 ? `${match + 1} of ` : ''}${count(matches.length)}`
              : 'none'}
        </span>
      )}
    </div>
  );
}

export function Header() {
  const app = useApp();
  const info = useLoaded((l) => l.info);
  const dark = useLoaded((l) => l.dark);
  const from = useView((v) => v.fromNs);
  const to = useView((v) => v.toNs);
  const names = info.recordings.map((recording) => recording.name);
  const whole = from <= info.fromNs && to >= info.toNs;
  return (
    <header class="top">
      <h1>weft</h1>
      <span class="program" title={names.join('\n')} data-testid="program">
        {names[0]}
        {names.length > 1 && ` and ${names.length - 1} more`}
      </span>
      <span class="muted about">
        {duration(info.toNs - info.fromNs)} · {count(info.events)} events
        {info.live && <span class="live"> ● live</span>}
      </span>
      <Search />
      <span class="spring" />
      <span class="muted num range" title="Length of what the timeline shows">
        {duration(to - from)}
      </span>
      <button disabled={whole} onClick={() => showAll(app)} title="Whole trace (0)">
        Whole trace
      </button>
      <button
        onClick={() => app.view.set({ theme: dark ? 'light' : 'dark' })}
        aria-label={dark ? 'Light colours' : 'Dark colours'}
      >
        {dark ? '☀' : '☾'}
      </button>
      <button onClick={() => app.loaded.set({ overlay: 'help' })} aria-label="Keys" title="Keys (?)">
        ?
      </button>
    </header>
  );
}
