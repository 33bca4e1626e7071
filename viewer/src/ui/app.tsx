// SPDX-License-Identifier: Apache-2.0
// The page: timeline, the column beside it, and the panels below; and what keeps URL, theme and item up to date.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Trace, TraceInfo } from '../api';
import { Chips, RecordingChoice } from './chips';
import { PANEL_NAMES } from './commands';
import { AppContext, useApp, useLoaded, useView } from './context';
import type { App, Loaded } from './context';
import { FlamePanel } from './flame/panel';
import { Header } from './header';
import { listenKeys } from './keys';
import { HistogramPanel } from './lists/histogram';
import { Descriptors, ReportList } from './lists/report';
import { Sql } from './lists/sql';
import { Delays, Polls, Tables } from './lists/rows';
import { Overlays } from './overlays';
import { Side } from './panels/side';
import { placeOf } from './place';
import { PANELS, Store, defaults, isEmpty, sameItem } from './state';
import type { Panel, View } from './state';
import { many } from './table';
import { slotOf } from './theme';
import { Timeline } from './timeline/timeline';
import { areApart } from './apart';
import { decode, decodePart, encode, encodePart } from './url';

function isDark(theme: View['theme']): boolean {
  return theme === 'auto' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
}

/** Of recordings with long times in between that nobody recorded, the first: of all there would be nothing to see. */
function firstView(info: TraceInfo): Partial<View> {
  if (!areApart(info)) return {};
  const [{ shiftNs, spanNs }] = info.recordings;
  return { fromNs: shiftNs, toNs: shiftNs + Math.max(spanNs, 1000) };
}

export function makeApp(trace: Trace): App {
  const { info } = trace;
  const base = defaults(info.fromNs, Math.max(info.toNs, info.fromNs + 1000));
  const view = new Store<View>({ ...base, ...firstView(info), ...decode(location.hash) });
  const dark = isDark(view.get().theme);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  const loaded = new Store<Loaded>({
    info,
    place: null,
    matches: [],
    match: -1,
    searching: false,
    overlay: null,
    said: '',
    dark,
  });
  return { trace, view, base, loaded };
}

/** Locations get their colours in the order of their table, so that they are the same at every start. */
async function colourLocations(app: App): Promise<void> {
  for (const row of await many(app.trace, 'location', ['name'], [], 200)) slotOf(row.str('name'));
}

function followTheme(app: App): void {
  const media = matchMedia('(prefers-color-scheme: dark)');
  const set = (): void => {
    const dark = isDark(app.view.get().theme);
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    app.loaded.set({ dark });
  };
  media.addEventListener('change', set);
  app.view.subscribe(set);
  set();
}

/** The URL follows the view, some time later; a link that is opened or typed is followed back. */
function followUrl(app: App): void {
  let written = location.hash;
  let timer = 0;
  const part = decodePart(location.hash);
  const write = (): void => {
    timer = 0;
    const hash = encode(app.view.get(), app.base, part);
    written = hash ? `#${hash}` : '';
    if (written !== location.hash) history.replaceState(null, '', written || location.pathname + location.search);
  };
  app.view.subscribe(() => {
    if (!timer) timer = window.setTimeout(write, 200);
  });
  window.addEventListener('hashchange', () => {
    if (location.hash === written) return;
    if (encodePart(decodePart(location.hash)) !== encodePart(part)) return location.reload();
    app.view.set({ ...app.base, ...decode(location.hash) });
  });
}

/** The place of the item on the timeline, for the last item only. */
function followItem(app: App): void {
  let last: View['item'] = null;
  const load = (): void => {
    const { item } = app.view.get();
    if (sameItem(item, last)) return;
    last = item;
    if (!item) return app.loaded.set({ place: null });
    void placeOf(app, item).then((place) => {
      if (sameItem(item, app.view.get().item)) app.loaded.set({ place });
    });
  };
  app.view.subscribe(load);
  load();
}

function followGrowth(app: App): void {
  app.trace.onGrow((info) => {
    const before = app.loaded.get().info;
    const { fromNs, toNs } = app.view.get();
    const atEnd = toNs >= before.toNs && fromNs <= before.fromNs;
    app.base.toNs = Math.max(info.toNs, info.fromNs + 1000);
    app.loaded.set({ info });
    if (atEnd) app.view.set({ fromNs: info.fromNs, toNs: app.base.toNs });
  });
}

function PanelBody({ panel }: { panel: Panel }) {
  if (panel === 'flame') return <FlamePanel />;
  if (panel === 'polls') return <Polls />;
  if (panel === 'delays') return <Delays />;
  if (panel === 'histogram') return <HistogramPanel />;
  if (panel === 'descriptors') return <Descriptors />;
  if (panel === 'tables') return <Tables />;
  if (panel === 'sql') return <Sql />;
  return <ReportList kind={panel} />;
}

function Bottom() {
  const app = useApp();
  const panel = useView((v) => v.panel);
  const empty = useView((v) => isEmpty(v.selection));
  const several = useLoaded((l) => l.info.recordings.length > 1);
  const tabs = useRef<HTMLDivElement>(null);
  const onKeyDown = (e: KeyboardEvent): void => {
    const by = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
    if (!by) return;
    const next = PANELS[(PANELS.indexOf(panel) + by + PANELS.length) % PANELS.length];
    app.view.set({ panel: next });
    (tabs.current?.querySelector(`[data-panel=${next}]`) as HTMLElement | null)?.focus();
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <section class="bottom" aria-label="Panels">
      <div class="tabs-row">
        <div class="tabs" role="tablist" ref={tabs} onKeyDown={onKeyDown}>
          {PANELS.map((p) => (
            <button
              key={p}
              role="tab"
              data-panel={p}
              aria-selected={p === panel}
              tabIndex={p === panel ? 0 : -1}
              onClick={() => app.view.set({ panel: p })}
            >
              {PANEL_NAMES[p]}
            </button>
          ))}
        </div>
        <span class="spring" />
        <RecordingChoice />
        {!empty && <Chips />}
        {empty && !several && (
          <span class="muted" title="Drag over the lanes: all panels follow">
            of the whole trace
          </span>
        )}
      </div>
      <div class="panel-body" role="tabpanel" aria-label={PANEL_NAMES[panel]}>
        <PanelBody panel={panel} />
      </div>
    </section>
  );
}

/** A border that can be moved, by pointer or arrow keys. */
function Splitter({ at, set }: { at: number; set: (share: number) => void }) {
  const move = (e: PointerEvent): void => {
    if (e.buttons !== 1) return;
    const box = (e.currentTarget as HTMLElement).parentElement?.getBoundingClientRect();
    if (box) set(Math.min(0.85, Math.max(0.15, (e.clientY - box.top) / box.height)));
  };
  return (
    <div
      class="splitter"
      role="separator"
      aria-label="Height of the timeline"
      aria-orientation="horizontal"
      aria-valuenow={Math.round(at * 100)}
      tabIndex={0}
      onPointerDown={(e) => e.currentTarget.setPointerCapture(e.pointerId)}
      onPointerMove={move}
      onKeyDown={(e) => {
        if (e.key !== 'ArrowUp' && e.key !== 'ArrowDown') return;
        set(Math.min(0.85, Math.max(0.15, at + (e.key === 'ArrowUp' ? -0.05 : 0.05))));
        e.preventDefault();
        e.stopPropagation();
      }}
    />
  );
}

const SAID_MS = 6000;

function Said() {
  const app = useApp();
  const said = useLoaded((l) => l.said);
  const place = useLoaded((l) => l.place);
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => app.loaded.set({ said: '' }), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <div class="said" role="status" aria-live="polite">
      {said && <span>{said}</span>}
      <span class="heard">{place ? place.arrows.map((a) => a.label).join('; ') : ''}</span>
    </div>
  );
}

export function Root({ app }: { app: App }) {
  const [split, setSplit] = useState(0.6);
  useEffect(() => {
    followTheme(app);
    followUrl(app);
    followItem(app);
    followGrowth(app);
    void colourLocations(app);
    const stop = listenKeys(app);
    let second = 0;
    const first = requestAnimationFrame(() => {
      second = requestAnimationFrame(() => (document.documentElement.dataset.ready = '1'));
    });
    return () => {
      stop();
      cancelAnimationFrame(first);
      cancelAnimationFrame(second);
    };
  }, []);
  return (
    <AppContext.Provider value={app}>
      <Header />
      <main>
        <div class="left" style={{ gridTemplateRows: `minmax(120px, ${split}fr) 5px minmax(100px, ${1 - split}fr)` }}>
          <Timeline />
          <Splitter at={split} set={setSplit} />
          <Bottom />
        </div>
        <Side />
      </main>
      <Said />
      <Overlays />
    </AppContext.Provider>
  );
}
