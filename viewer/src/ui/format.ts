// SPDX-License-Identifier: Apache-2.0
// Numbers as text. The same rounding as weft report: three digits that count, and the unit.

const UNITS: [number, string][] = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'us'],
];

function three(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/** "50.0 ms"; "not measured" where it is not a number. */
export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return 'not measured';
  const size = Math.abs(ns);
  for (const [unit, name] of UNITS) if (size >= unit * 0.9995) return `${three(ns / unit)} ${name}`;
  return `${Math.round(ns)} ns`;
}

export function count(n: number): string {
  if (!Number.isFinite(n)) return 'not known';
  return Math.round(n).toLocaleString('en-US');
}

/** "1 poll", "2 polls". */
export function plural(n: number, one: string): string {
  return `${count(n)} ${one}${n === 1 ? '' : 's'}`;
}

export function share(part: number, whole: number): string {
  if (!(whole > 0) || !Number.isFinite(part)) return '';
  const percent = (100 * part) / whole;
  return `${percent >= 9.95 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

/** A moment as weft report has it: "+1.052 s". More digits where `stepNs` is finer. */
export function moment(ns: number, stepNs = 1e6): string {
  if (!Number.isFinite(ns)) return 'not known';
  const digits = Math.min(9, Math.max(3, Math.ceil(9 - Math.log10(Math.max(1, stepNs)))));
  return `${ns < 0 ? '-' : '+'}${(Math.abs(ns) / 1e9).toFixed(digits)} s`;
}

/** Wall-clock time in UTC, with as many digits as the step needs. */
export function clock(ns: number, startUnixNs: number, stepNs = 1e6): string {
  const startMs = Math.floor(startUnixNs / 1e6);
  const total = startUnixNs - startMs * 1e6 + ns;
  const ms = startMs + Math.floor(total / 1e6);
  const text = new Date(ms).toISOString();
  const rest = Math.floor(total - Math.floor(total / 1e6) * 1e6);
  const fine = text.slice(20, 23) + String(rest).padStart(6, '0');
  const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(1, stepNs)))));
  return text.slice(11, 19) + (digits ? '.' + fine.slice(0, digits) : '');
}

export function day(startUnixNs: number): string {
  return new Date(startUnixNs / 1e6).toISOString().slice(0, 10);
}

/** The nearest of 1, 2, 5 times a power of ten that is not smaller. */
export function niceStep(ns: number): number {
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(ns, 1))));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= ns) return factor * power;
  return 10 * power;
}

/** A value by the unit of its column. */
export function byUnit(value: number, unit: string): string {
  if (Number.isNaN(value)) return '';
  if (unit === 'ns') return duration(value);
  if (unit === 'By') return `${count(value)} B`;
  return Number.isInteger(value) ? count(value) : value.toPrecision(3);
}

/** The last part of a path, for places where the whole one is in the tooltip. */
/** The symbol of a lock, or its name in the program where the symbol is only an offset. */
export function lockName(symbol: string, name: string): string {
  return symbol && !(name && /\+0x[\da-f]+$/.test(symbol)) ? symbol : name;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
