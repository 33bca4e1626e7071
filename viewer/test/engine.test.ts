// SPDX-License-Identifier: Apache-2.0
// The engine says what the command says: rows, sums, reports and trees of kept segments.
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';
import type { Selection } from '../src/api.ts';
import { LAYERS } from '../src/engine/core.ts';
import { covered, slicesOf, type LodData } from '../src/engine/lod.ts';
import type { Loaded, Session } from '../src/engine/session.ts';
import { newSession, query, segments, source, weft } from './machine.ts';

const GOLDEN = ['server', 'locks', 'loop'].map((name) => path.join(source, 'test/golden', name));

async function load(directory: string): Promise<{ session: Session; loaded: Loaded }> {
  const session = await newSession();
  const loaded = session.load({ files: segments(directory), names: new Uint8Array(), live: false, left: [] });
  return { session, loaded };
}

function sum(values: Iterable<number>): number {
  let all = 0;
  for (const value of values) if (!Number.isNaN(value)) all += value;
  return all;
}

for (const directory of GOLDEN) {
  const name = path.basename(directory);

  test(`${name}: every number of every table adds up to what weft query says`, async () => {
    const { session, loaded } = await load(directory);
    for (const table of loaded.info.tables) {
      const numbers = table.columns.filter((column) => column.type === 'number' || column.type === 'real');
      const texts = table.columns.filter((column) => column.type === 'text' || column.type === 'id');
      const asked = [
        'count(*) as n',
        ...numbers.map(({ name: column, type }) =>
          type === 'real' ? `printf('%.17g', total("${column}")) as "${column}"` : `sum("${column}") as "${column}"`,
        ),
        ...texts.map((column) => `count(distinct "${column.name}") as "${column.name}"`),
      ];
      const wanted = query(directory, ['0.weft'], `select ${asked.join(', ')} from ${table.name}`)[0];
      const rows = session.rows(table.name);
      assert.equal(rows.n, wanted.n, table.name);
      for (const { name: column } of numbers) {
        const got = sum(rows.columns[column].values);
        const want = Number(wanted[column]);
        // Two ways to add up doubles: the last digits may differ.
        assert.ok(Math.abs(got - want) <= 1e-9 * Math.abs(want), `${table.name}.${column}: ${got} and ${want}`);
      }
      for (const { name: column } of texts) {
        const different = new Set(rows.columns[column].values);
        different.delete(0xffffffff);
        assert.equal(different.size, wanted[column], `${table.name}.${column}`);
      }
    }
  });

  test(`${name}: the report is that of weft report --json`, async () => {
    const { session } = await load(directory);
    const wanted = JSON.parse(weft(directory, 'report', '--json', '--no-symbols', '--top', '200', '0.weft'));
    const got = session.report({}) as { recordings: unknown[] };
    assert.deepEqual(got.recordings, wanted.recordings);
  });

  test(`${name}: a part of the time has the report of --from and --to`, async () => {
    const { session, loaded } = await load(directory);
    const fromNs = Math.floor(loaded.info.toNs / 4);
    const toNs = Math.floor(loaded.info.toNs / 2);
    const args = ['--from', `${fromNs}ns`, '--to', `${toNs}ns`, '--top', '200', '--no-symbols'];
    const wanted = JSON.parse(weft(directory, 'report', '--json', ...args, '0.weft'));
    const got = session.report({ fromNs, toNs }) as { recordings: unknown[] };
    assert.deepEqual(got.recordings, wanted.recordings);
  });

  test(`${name}: at each zoom no poll is lost, and the longest is seen`, async () => {
    const { session, loaded } = await load(directory);
    const { toNs } = loaded.info;
    let polls = 0;
    let longest = { row: -1, ns: -1 };
    const rows = session.rows('poll', ['duration_ns']);
    rows.columns.duration_ns.values.forEach((ns, row) => {
      if (ns > longest.ns) longest = { row, ns };
    });
    for (const pixels of [1, 7, 300, 2000, 1e6]) {
      polls = 0;
      let seen = false;
      for (const layers of loaded.layers) {
        const slices = slicesOf(layers.poll, 0, toNs + 1, pixels);
        polls += sum(slices.count);
        seen ||= slices.row.includes(longest.row);
        for (let i = 1; i < slices.n; i++) assert.ok(slices.beginNs[i] >= slices.beginNs[i - 1]);
      }
      assert.equal(polls, rows.n, `${pixels} pixels`);
      assert.equal(seen, rows.n > 0, `${pixels} pixels`);
    }
  });
}

test('each layer of each lane is as long as its rows', async () => {
  const { session, loaded } = await load(GOLDEN[0]);
  for (const layer of LAYERS) {
    if (layer === 'flame' || layer === 'context' || layer === 'slice' || layer === 'loss') continue;
    const column = layer === 'park' ? [{ column: 'begin_ns', op: '>=' as const, value: 0 }] : [];
    const n = session.rows(layer, ['recording'], column).n;
    const lods = loaded.layers.flatMap((lane) => lane[layer]);
    assert.equal(sum(lods.map((lod: LodData) => lod.row.length)), n, layer);
  }
});

test('what is under a pixel covers as much as its polls take', async () => {
  const { loaded } = await load(GOLDEN[0]);
  const lod = loaded.layers[0].poll[0];
  const whole = covered(lod, 0, loaded.info.toNs + 1);
  const lengths = lod.endNs.map((end, i) => end - lod.beginNs[i]);
  assert.ok(Math.abs(whole - sum(lengths)) < 1);
  const parts = Array.from({ length: 97 }, (_, i) => {
    const at = (k: number): number => (k * (loaded.info.toNs + 1)) / 97;
    return covered(lod, at(i), at(i + 1));
  });
  assert.ok(Math.abs(sum(parts) - whole) < 1000);
});

/** The root of a flame graph, and what weft query has for the same filter. */
async function compareFlame(selection: Selection, where: string): Promise<void> {
  const { session } = await load(GOLDEN[0]);
  const sql =
    'select coalesce(sum(s.weight_ns), 0) as ns, count(*) as n ' +
    `from sample s left join poll p on p.id = s.poll_id ${where}`;
  const [wanted] = query(GOLDEN[0], ['0.weft'], sql);
  for (const invert of [false, true]) {
    const flame = session.flame(selection, 'cpu', invert);
    assert.equal(flame.total[0], wanted.ns, where);
    assert.equal(flame.count[0], wanted.n, where);
    assert.equal(sum(flame.self), wanted.ns, 'self adds up to the root');
    flame.parent.forEach((parent, i) => assert.ok(i === 0 ? parent === -1 : parent < i));
  }
}

test('flame graphs have the sums of weft query', async () => {
  const { session } = await load(GOLDEN[0]);
  const [place] = query(GOLDEN[0], ['0.weft'], `select id from location where name = 'handle_upload'`);
  const [poll] = query(GOLDEN[0], ['0.weft'], 'select poll_id, count(*) from sample where poll_id > 0 group by 1');
  const [worker] = query(GOLDEN[0], ['0.weft'], 'select worker_id from sample where worker_id > 0 limit 1');
  await compareFlame({}, '');
  await compareFlame({ fromNs: 1e9, toNs: 2e9 }, 'where s.time_ns >= 1e9 and s.time_ns < 2e9');
  await compareFlame({ locationId: Number(place.id) }, `where p.location_id = ${place.id}`);
  await compareFlame({ minPollNs: 5e6 }, 'where p.duration_ns >= 5000000');
  await compareFlame({ pollId: Number(poll.poll_id) }, `where s.poll_id = ${poll.poll_id}`);
  await compareFlame({ workerIds: [Number(worker.worker_id)] }, `where s.worker_id = ${worker.worker_id}`);
  const [waits] = query(GOLDEN[0], ['0.weft'], 'select sum(duration_ns) as ns from wait');
  assert.equal(session.flame({}, 'wait').total[0], waits.ns);
  const [off] = query(GOLDEN[0], ['0.weft'], 'select sum(duration_ns) as ns from offcpu');
  assert.equal(session.flame({}, 'offcpu').total[0], off.ns);
});

/** Time of threads by SQL: on the CPU, off it, and what of a wait is neither. No wait here is inside another. */
const WALL = `with alone as (
  select min(w.duration_ns, w.end_ns - w.begin_ns - coalesce(w.on_cpu_ns, 0) - coalesce((
    select sum(min(o.end_ns, w.end_ns) - max(o.begin_ns, w.begin_ns)) from offcpu o
    where o.thread_id = w.thread_id and o.begin_ns < w.end_ns and o.end_ns > w.begin_ns), 0)) as ns from wait w)
  select (select coalesce(sum(weight_ns), 0) from sample) as cpu, (select sum(duration_ns) from offcpu) as off,
  (select sum(ns) from alone where ns > 0) as alone, (select sum(duration_ns) from wait) as waits`;

for (const trace of GOLDEN) {
  test(`the flame graph of wall time counts nothing twice: ${path.basename(trace)}`, async () => {
    const { session } = await load(trace);
    const [wanted] = query(trace, ['0.weft'], WALL) as Record<string, number>[];
    assert.ok(wanted.alone < wanted.waits, 'some waits are off the CPU');
    for (const invert of [false, true]) {
      const flame = session.flame({}, 'wall', invert);
      assert.equal(flame.total[0], wanted.cpu + wanted.off + wanted.alone);
      assert.equal(sum(flame.self), flame.total[0]);
    }
    const { toNs } = (await load(trace)).loaded.info;
    const parts = [0, 1, 2].map((i) => session.flame({ fromNs: (i * toNs) / 3, toNs: ((i + 1) * toNs) / 3 }, 'wall'));
    const near = sum(parts.map((part) => part.total[0])) / (wanted.cpu + wanted.off + wanted.alone);
    assert.ok(Math.abs(near - 1) < 0.01, `parts of the time add up to the whole: ${near}`);
  });
}

test('the thread of a worker has no second lane', async () => {
  for (const trace of GOLDEN) {
    const { loaded } = await load(trace);
    const workers = new Set(loaded.info.lanes.filter((lane) => lane.workerId >= 0).map((lane) => lane.threadId));
    const again = loaded.info.lanes.filter((lane) => lane.workerId < 0 && workers.has(lane.threadId));
    assert.deepEqual(again, [], trace);
  }
});

test('rows are filtered, put in order and cut', async () => {
  const { session } = await load(GOLDEN[0]);
  const order = { column: 'duration_ns', descending: true };
  const filter = [{ column: 'location', op: '=' as const, value: 'handle_upload' }];
  const rows = session.rows('poll', ['id', 'duration_ns', 'rowid', 'trace'], filter, 3, order);
  const sql = `select id from poll where location = 'handle_upload' order by duration_ns desc limit 3`;
  assert.deepEqual([...rows.columns.id.values], query(GOLDEN[0], ['0.weft'], sql).map((row) => row.id));
  const first = rows.columns.rowid.values[0];
  const again = session.rows('poll', ['id'], [{ column: 'rowid', op: '=', value: first }]);
  assert.deepEqual([...again.columns.id.values], [rows.columns.id.values[0]]);
  const [id] = rows.columns.id.values;
  const read = session.rows('poll', ['rowid', 'trace'], [{ column: 'id', op: '=', value: id }]);
  assert.equal(read.columns.rowid.values[0], first, 'also where a column has to be read');
  assert.throws(() => session.rows('nothing'), /there is no table nothing/);
  assert.throws(() => session.rows('poll', ['nothing']), /no column nothing/);
});

test('slices of short polls that are not kept are read for the poll that is asked about', async () => {
  const files = [segments(GOLDEN[0])[0], { ...segments(GOLDEN[1])[0], name: 'other.weft' }];
  const sessions = [await newSession(), await newSession()];
  sessions[1].engine.slicesUpTo(0);
  for (const one of sessions) one.load({ files, names: new Uint8Array(), live: false, left: [] });
  const [all, few] = sessions;
  assert.ok(few.rows('slice', ['poll_id']).n < all.rows('slice', ['poll_id']).n, 'some are not kept');
  const columns = ['poll_id', 'begin_ns', 'end_ns', 'duration_ns'];
  const polls = all.rows('poll', ['id', 'recording'], [{ column: 'duration_ns', op: '<', value: 100000 }]);
  for (const recording of new Set(polls.columns.recording.values)) {
    const ids = polls.columns.id.values.filter((_, i) => polls.columns.recording.values[i] === recording);
    for (const id of [ids[0], ids[ids.length >> 1], ids[ids.length - 1]]) {
      const filter = [{ column: 'poll_id', op: '=' as const, value: id }];
      const [wanted, got] = [all, few].map((one) => one.rows('slice', columns, filter));
      assert.ok(wanted.n > 0, `poll ${id}`);
      for (const name of columns) assert.deepEqual(got.columns[name].values, wanted.columns[name].values, name);
    }
  }
});

test('damaged and foreign files give what can be read, and a message', async () => {
  const [whole] = segments(GOLDEN[0]);
  const cut = { name: 'cut.weft', bytes: whole.bytes.slice(0, Math.floor(whole.bytes.length * 0.7)) };
  const flipped = { name: 'flipped.weft', bytes: whole.bytes.slice() };
  for (let at = 40000; at < flipped.bytes.length; at += 5000) flipped.bytes[at] ^= 0xff;
  const foreign = { name: 'foreign.weft', bytes: new TextEncoder().encode('<script>alert(1)</script>') };
  for (const file of [cut, flipped]) {
    const session = await newSession();
    const loaded = session.load({ files: [file], names: new Uint8Array(), live: false, left: [] });
    assert.ok(loaded.info.events > 0, file.name);
    assert.ok(session.rows('poll', ['id']).n > 0, file.name);
    assert.match(loaded.info.problems.join('\n'), new RegExp(file.name), file.name);
  }
  const session = await newSession();
  const loaded = session.load({ files: [foreign], names: new Uint8Array(), live: false, left: [] });
  assert.equal(loaded.info.events, 0);
  assert.match(loaded.info.problems.join('\n'), /foreign\.weft/);
});

test('a trace can be loaded again, as one that grows is', async () => {
  const session = await newSession();
  const options = { files: segments(GOLDEN[0]), names: new Uint8Array(), live: true, left: [] };
  const first = session.load(options);
  const other = { ...segments(GOLDEN[2])[0], name: 'other.weft' };
  const second = session.load({ ...options, files: [...segments(GOLDEN[0]), other] });
  assert.ok(second.info.events > first.info.events);
  const groups = new Set(second.info.lanes.map((lane) => lane.recording));
  assert.equal(groups.size, 2);
});

test('a lock has the name of its variable, as the command found it', async () => {
  const directory = GOLDEN[1];
  const sql = "select r.uuid, w.object, count(*) as n from wait w, recording r where w.kind = 'lock' group by 1, 2";
  const [lock] = query(directory, ['0.weft'], sql);
  const names = new TextEncoder().encode(`R\t${lock.uuid}\t0\nD\t${lock.object}\ttable_lock\n`);
  const session = await newSession();
  session.load({ files: segments(directory), names, live: false, left: [] });
  const { values } = session.rows('wait', ['object_name']).columns.object_name;
  const named = [...values].filter((value) => value !== 0xffffffff);
  assert.equal(named.length, lock.n);
  assert.equal(new Set(named).size, 1);
  const findings = JSON.stringify(session.report({}));
  assert.match(findings, /waits for table_lock/);
});
