// SPDX-License-Identifier: Apache-2.0
// The timeline's place on the page: labels of lanes as text beside the canvas, tooltip, and what makes it draw again.
import { useEffect, useRef, useState } from 'preact/hooks';
import { useApp, useLoaded, useView } from '../context';
import { TimelineCanvas } from './canvas';
import { readCounted, readLosses } from './gaps';
import { listen } from './input';
import type { Box, LaneBox, Layout } from './layout';
import { Tooltip, describe, describeHead } from './tooltip';
import type { Tip } from './tooltip';

const STRIPS: Record<string, string> = {
  poll: 'polls',
  wait: 'waits',
  offcpu: 'off CPU',
  context: 'context',
  event: 'events',
  flame: 'samples',
};

function toggled<T>(list: T[], one: T): T[] {
  return list.includes(one) ? list.filter((x) => x !== one) : [...list, one];
}

function LaneLabel({ box }: { box: LaneBox }) {
  const app = useApp();
  const { lane } = box;
  const fold = () => app.view.set({ collapsed: toggled(app.view.get().collapsed, box.key) });
  const pin = () => app.view.set({ pinned: toggled(app.view.get().pinned, lane.id) });
  return (
    <div class="lane-label" style={{ top: `${box.y}px`, height: `${box.h}px` }}>
      <button class="fold" aria-expanded={!box.collapsed} aria-label={`lane ${lane.name}`} onClick={fold}>
        {box.collapsed ? '▸' : '▾'}
      </button>
      <span class="lane-name" title={`${lane.name}, thread ${lane.tid}`}>
        {lane.name}
      </span>
      <button
        class={box.pinned ? 'pin on' : 'pin'}
        aria-pressed={box.pinned}
        aria-label={`pin ${lane.name} to the top`}
        title="Pin to the top"
        onClick={pin}
      >
        ⊤
      </button>
      {!box.collapsed &&
        box.strips.map((strip, i) => (
          <span
            key={strip.layer}
            class={i ? 'strip-name' : 'strip-name first'}
            style={{ top: `${strip.y}px`, height: `${strip.h}px` }}
          >
            {i || strip.layer !== 'poll' ? STRIPS[strip.layer] : ''}
          </span>
        ))}
    </div>
  );
}

function BoxLabel({ box }: { box: Box }) {
  const app = useApp();
  if (box.kind === 'lane') return <LaneLabel box={box} />;
  if (box.kind === 'chart')
    return (
      <div class="chart-label" style={{ top: `${box.y}px`, height: `${box.h}px` }}>
        {box.title}
      </div>
    );
  const fold = () => app.view.set({ collapsed: toggled(app.view.get().collapsed, box.key) });
  const [, program, rest] = /^(.*?)( \(\d+\).*)$/.exec(box.name) ?? ['', box.name, '']; // a process keeps its number
  return (
    <div class="group-label" style={{ top: `${box.y}px`, height: `${box.h}px` }}>
      <button class="fold" aria-expanded={!box.collapsed} onClick={fold} title={box.name}>
        {box.collapsed ? '▸' : '▾'} <span class="program">{program}</span>
        {rest && <span class="rest">{rest}</span>}
        <small>{box.lanes}</small>
      </button>
    </div>
  );
}

function HeadGutter() {
  const app = useApp();
  const filter = useView((v) => v.laneFilter);
  const time = useView((v) => v.time);
  const colour = useView((v) => v.colour);
  return (
    <div class="gutter head-gutter">
      <input
        type="search"
        class="lane-filter"
        placeholder="Filter lanes"
        aria-label="Filter lanes by name"
        value={filter}
        onInput={(e) => app.view.set({ laneFilter: e.currentTarget.value })}
      />
      <div class="switches">
        <button
          title="Colour polls by part of their time, or by location"
          onClick={() => app.view.set({ colour: colour === 'part' ? 'location' : 'part' })}
        >
          by {colour}
        </button>
        <button
          title="Times from the start of the trace, or by the wall clock (UTC)"
          onClick={() => app.view.set({ time: time === 'relative' ? 'wall' : 'relative' })}
        >
          {time === 'relative' ? 'relative' : 'UTC'}
        </button>
      </div>
    </div>
  );
}

export function Timeline() {
  const app = useApp();
  const head = useRef<HTMLCanvasElement>(null);
  const lanes = useRef<HTMLCanvasElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const drawn = useRef<TimelineCanvas | null>(null);
  const [layout, setLayout] = useState<Layout>({ boxes: [], height: 0 });
  const [tip, setTip] = useState<Tip | null>(null);
  const dark = useLoaded((l) => l.dark);
  const info = useLoaded((l) => l.info);

  useEffect(() => {
    if (!head.current || !lanes.current || !body.current) return;
    const t = new TimelineCanvas(app, head.current, lanes.current, body.current, setLayout);
    drawn.current = t;
    t.resize();
    const stops = [
      app.view.subscribe(() => t.request()),
      app.loaded.subscribe(() => t.request()),
      listen(
        app,
        t,
        (x, y) => setTip(describe(app, t, x, y)),
        (x, y) => setTip(describeHead(app, t, x, y)),
        () => setTip(null),
      ),
    ];
    const watch = new ResizeObserver(() => t.resize());
    watch.observe(body.current);
    const scroll = (): void => t.request();
    body.current.addEventListener('scroll', scroll);
    (window as unknown as { __weftTimeline: TimelineCanvas }).__weftTimeline = t;
    return () => {
      for (const stop of stops) stop();
      watch.disconnect();
    };
  }, []);
  const place = useLoaded((l) => l.place);
  useEffect(() => {
    if (!place || place.threadId < 0) return;
    const others = place.arrows.flatMap((a) => (a.kind === 'delayed' ? [] : [a.fromThread, a.toThread]));
    drawn.current?.revealLanes(place.threadId, others);
  }, [place]);
  const recording = useView((v) => v.selection.recording);
  useEffect(() => {
    if (recording !== undefined) drawn.current?.revealRecording(recording);
  }, [recording]);
  useEffect(() => drawn.current?.themeChanged(), [dark]);
  useEffect(() => {
    const t = drawn.current;
    if (!t) return;
    t.readLayers();
    void readLosses(app.trace).then((losses) => t.setLosses(losses));
    void readCounted(app.trace).then((counted) => t.setCounted(counted));
    t.request();
  }, [info]);

  return (
    <section class="timeline" aria-label="Timeline">
      <div class="tl-head">
        <HeadGutter />
        <canvas ref={head} class="tl-head-canvas" aria-hidden="true" />
      </div>
      <div class="tl-body" ref={body}>
        <div class="tl-spacer" style={{ height: `${layout.height}px` }}>
          <canvas
            ref={lanes}
            class="tl-lanes"
            role="img"
            aria-label="Lanes of workers and threads over time. n and p go to long polls, which Details has in words."
            tabIndex={0}
          />
          {layout.boxes.map((box) => (
            <BoxLabel key={box.key} box={box} />
          ))}
        </div>
        {layout.boxes.every((box) => box.kind !== 'lane') && (
          <p class="empty">
            {info.lanes.length
              ? 'No lane has this in its name.'
              : 'This trace has no threads: nothing recorded events.'}
          </p>
        )}
      </div>
      {tip && <Tooltip tip={tip} />}
    </section>
  );
}
