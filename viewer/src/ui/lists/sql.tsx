// SPDX-License-Identifier: Apache-2.0
// SQL over what was recorded: the page sends a statement to weft view, which runs it as weft query does. A cell that
// names a poll, a thread or a moment leads to the timeline.
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Answer, Question } from '../../api';
import { fit, goPoll, say, select } from '../actions';
import type { App } from '../context';
import { useApp, useView } from '../context';
import { Grid } from './grid';
import type { GridColumn } from './grid';

const MOST = 2000;
type Cell = string | number | null;
type Cells = Cell[];

const IDS = 2 ** 44; // ids of polls and threads have the number of their recording above this

/** The recording that a row is about: its own column says so, else any id in it; NaN: not known. */
export function recordingOf(columns: string[], row: Cells): number {
  const own = row[columns.indexOf('recording')];
  if (typeof own === 'number') return own;
  const id = row.find((cell, i) => typeof cell === 'number' && /(^|_)(poll|thread|worker)_id$/.test(columns[i]));
  return typeof id === 'number' ? Math.floor(id / IDS) : NaN;
}

/** The moment that a cell is, in ns from the start of its recording, by the name of its column; NaN: it is none. */
export function momentOf(column: string, cell: Cell): number {
  const found = /^(time|begin|end|from|to|first|last|spawn)_(ns|s)$/.exec(column);
  return found && typeof cell === 'number' ? cell * (found[2] === 's' ? 1e9 : 1) : NaN;
}

function isPoll(column: string, sql: string): boolean {
  const polls = /\bfrom\s+poll\b/i.test(sql) && !/\bjoin\b|,\s*poll\b|\bfrom\s+(?!poll\b)/i.test(sql);
  return /(^|_)poll_id$/.test(column) || (column === 'id' && polls);
}

function toMoment(app: App, answer: Answer, row: Cells, ns: number): void {
  const { recordings } = app.loaded.get().info;
  const number = recordings.length === 1 ? 0 : recordingOf(answer.columns, row);
  const recording = recordings[number];
  if (!recording) return say(app, 'Which recording this is of is not known: select its column recording, too.');
  const cell = (name: string): Cell => row[answer.columns.indexOf(name)] ?? null;
  const [begin, length] = [momentOf('begin_ns', cell('begin_ns')), cell('duration_ns')];
  const from = recording.shiftNs + (Number.isNaN(begin) ? ns : begin);
  fit(app, from, from + (!Number.isNaN(begin) && typeof length === 'number' ? length : 1e6));
}

async function toPoll(app: App, id: number): Promise<void> {
  const before = app.view.get().item;
  await goPoll(app, id);
  if (app.view.get().item === before) say(app, `Poll ${id} is not in what the page has loaded.`);
}

/** What a cell leads to, or nothing. */
function jump(app: App, answer: Answer, sql: string, row: Cells, i: number): (() => void) | null {
  const [column, cell] = [answer.columns[i], row[i]];
  if (typeof cell !== 'number') return null;
  if (isPoll(column, sql)) return () => void toPoll(app, cell);
  if (column === 'thread_id') return () => select(app, { threadIds: [cell] });
  const ns = momentOf(column, cell);
  return Number.isNaN(ns) ? null : () => toMoment(app, answer, row, ns);
}

function Result({ answer, sql }: { answer: Answer; sql: string }) {
  const app = useApp();
  const columns = useMemo(
    (): GridColumn<Cells>[] =>
      answer.columns.map((name, i) => ({
        id: `${i}`,
        title: name,
        unit: answer.rows.some((row) => typeof row[i] === 'string') ? 'text' : '1',
        value: (row) => row[i] ?? (answer.rows.some((other) => typeof other[i] === 'string') ? '' : NaN),
        render: (row): ComponentChildren => {
          const text = row[i] === null ? <span class="muted">NULL</span> : String(row[i]);
          const to = jump(app, answer, sql, row, i);
          if (!to) return text;
          return (
            <button class="link" title="Shows it on the timeline" onClick={to}>
              {text}
            </button>
          );
        },
      })),
    [answer, sql],
  );
  return (
    <Grid
      columns={columns}
      rows={answer.rows}
      name="rows"
      none="The answer has no row."
      note={answer.truncated ? 'and more: the answer was cut here' : undefined}
      keyOf={(_, i) => i}
    />
  );
}

/** A page in one file: why there is none here, and what to do. */
function Without({ sql }: { sql: string }) {
  const quoted = `'${(sql.trim() || 'select location, count(*) from poll group by 1').replaceAll("'", "'\\''")}'`;
  return (
    <div class="sql-none">
      <p>
        This page is one file without a command behind it, so there is nothing that runs SQL. SQLite's own build for
        browsers has 406 KB gzipped, more than this whole page, and is not in it.
      </p>
      <p>With the directory that was recorded to:</p>
      <pre data-testid="sql-command">weft query DIR {quoted}</pre>
      <p class="muted">“weft view DIR” has this box. “weft query --list” prints questions that are often asked.</p>
    </div>
  );
}

export function Sql() {
  const app = useApp();
  const sql = useView((v) => v.sql);
  const [questions, setQuestions] = useState<Question[]>([]);
  const [asked, setAsked] = useState<{ sql: string; answer: Answer } | null>(null);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const { trace } = app;
  useEffect(() => void trace.questions?.().then(setQuestions, () => {}), []);
  const run = async (text: string): Promise<void> => {
    setBusy(true);
    setError('');
    try {
      setAsked({ sql: text, answer: await trace.query!(text, MOST) });
    } catch (failed) {
      setAsked(null);
      setError((failed as Error).message);
    }
    setBusy(false);
  };
  const choose = (name: string): void => {
    const found = questions.find((q) => q.name === name);
    if (!found) return;
    app.view.set({ sql: found.sql });
    void run(found.sql);
  };
  return (
    <div class="tables sql">
      <div class="toolbar">
        <textarea
          aria-label="SQL"
          rows={4}
          spellcheck={false}
          placeholder="select location, count(*), max(duration_ns) from poll group by 1"
          value={sql}
          onInput={(e) => app.view.set({ sql: e.currentTarget.value })}
          onKeyDown={(e) => {
            e.stopPropagation();
            if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey) || !trace.query) return;
            e.preventDefault();
            void run(sql);
          }}
        />
        {trace.query && (
          <span class="sql-buttons">
            <button disabled={busy || !sql.trim()} onClick={() => void run(sql)} title="Ctrl+Enter">
              {busy ? 'Running' : 'Run'}
            </button>
            <select aria-label="Saved questions" value="" onChange={(e) => choose(e.currentTarget.value)}>
              <option value="">Saved questions</option>
              {questions.map((q) => (
                <option key={q.name} value={q.name}>
                  {q.name}: {q.what}
                </option>
              ))}
            </select>
            <span class="muted">Tables and columns are those of the tab Tables.</span>
          </span>
        )}
      </div>
      {error && (
        <p class="problem" role="alert" data-testid="sql-error">
          {error}
        </p>
      )}
      {!trace.query && <Without sql={sql} />}
      {asked && <Result answer={asked.answer} sql={asked.sql} />}
    </div>
  );
}
