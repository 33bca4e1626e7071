// SPDX-License-Identifier: Apache-2.0
// Help and the palette of all commands, above the page.
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { COMMANDS, keyName } from './commands';
import type { Command } from './commands';
import { useApp, useLoaded } from './context';

function useDialog(close: () => void) {
  const box = useRef<HTMLDivElement>(null);
  // Before the next key: people type on at once.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    (box.current?.querySelector('input, button') as HTMLElement | null)?.focus();
    return () => before?.focus();
  }, []);
  const onKeyDown = (e: KeyboardEvent): void => {
    if (e.key === 'Escape') {
      close();
      e.preventDefault();
      e.stopPropagation();
    }
    if (e.key !== 'Tab' || !box.current) return;
    const stops = [...box.current.querySelectorAll<HTMLElement>('input, button')];
    const at = stops.indexOf(document.activeElement as HTMLElement);
    stops[(at + (e.shiftKey ? -1 : 1) + stops.length) % stops.length]?.focus();
    e.preventDefault();
  };
  return { box, onKeyDown };
}

const HANDS: [string, string][] = [
  ['wheel, pinch', 'zoom at the cursor'],
  ['Shift and wheel', 'scroll the lanes'],
  ['drag', 'select an area: all panels follow it'],
  ['Shift and drag', 'move along'],
  ['click', 'what is there, and its cause'],
  ['double click in the flame graph', 'zoom in there'],
];

function Help({ close }: { close: () => void }) {
  const { box, onKeyDown } = useDialog(close);
  const groups = [...new Set(COMMANDS.map((c) => c.group))];
  return (
    <div class="overlay help" role="dialog" aria-modal="true" aria-label="Keys" ref={box} onKeyDown={onKeyDown}>
      <header>
        <h2>Keys</h2>
        <button onClick={close}>Close</button>
      </header>
      <div class="help-groups">
        {groups.map((group) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {COMMANDS.filter((c) => c.group === group && c.keys.length).map((c) => (
                <div class="fact" key={c.name}>
                  <dt>
                    {c.keys.map((k) => (
                      <kbd key={k}>{keyName(k)}</kbd>
                    ))}
                  </dt>
                  <dd>{c.name}</dd>
                </div>
              ))}
              {group === 'Find' && (
                <div class="fact">
                  <dt>
                    <kbd>Enter</kbd> <kbd>Shift+Enter</kbd>
                  </dt>
                  <dd>Next, previous match</dd>
                </div>
              )}
            </dl>
          </section>
        ))}
        <section>
          <h3>Pointer</h3>
          <dl>
            {HANDS.map(([what, does]) => (
              <div class="fact" key={what}>
                <dt>{what}</dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </div>
  );
}

function Palette({ close }: { close: () => void }) {
  const app = useApp();
  const { box, onKeyDown } = useDialog(close);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const list = useMemo(() => {
    const wanted = text.toLowerCase();
    const { info } = app.loaded.get();
    const lanes: Command[] = info.lanes.map((lane) => ({
      keys: [],
      name: `Select lane ${lane.name}`,
      group: 'Select',
      run: () => app.view.set({ selection: { ...app.view.get().selection, threadIds: [lane.threadId] } }),
    }));
    return [...COMMANDS.filter((c) => c.name !== 'All commands'), ...lanes].filter((c) =>
      c.name.toLowerCase().includes(wanted),
    );
  }, [text]);
  const run = (c: Command | undefined): void => {
    close();
    c?.run(app);
  };
  return (
    <div
      class="overlay palette"
      role="dialog"
      aria-modal="true"
      aria-label="All commands"
      ref={box}
      onKeyDown={onKeyDown}
    >
      <input
        placeholder="What to do"
        aria-label="What to do"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${at}`}
        value={text}
        onInput={(e) => {
          setText(e.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(e) => {
          if (e.key === 'Enter') run(list[at]);
          else if (e.key === 'ArrowDown') setAt(Math.min(list.length - 1, at + 1));
          else if (e.key === 'ArrowUp') setAt(Math.max(0, at - 1));
          else return;
          e.preventDefault();
          e.stopPropagation();
        }}
      />
      <ul id="palette-list" role="listbox">
        {list.slice(0, 40).map((c, i) => (
          <li key={c.name} id={`palette-${i}`} role="option" aria-selected={i === at} onClick={() => run(c)}>
            <span>{c.name}</span>
            <span>
              {c.keys.map((k) => (
                <kbd key={k}>{keyName(k)}</kbd>
              ))}
            </span>
          </li>
        ))}
        {!list.length && <li class="muted">Nothing is called that.</li>}
      </ul>
    </div>
  );
}

export function Overlays() {
  const app = useApp();
  const overlay = useLoaded((l) => l.overlay);
  const close = (): void => app.loaded.set({ overlay: null });
  if (!overlay) return null;
  return (
    <div class="shade" onClick={(e) => e.target === e.currentTarget && close()}>
      {overlay === 'help' ? <Help close={close} /> : <Palette close={close} />}
    </div>
  );
}
