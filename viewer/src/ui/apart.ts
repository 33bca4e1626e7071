// SPDX-License-Identifier: Apache-2.0
// Recordings of different hours, in one view: of what is between them there is nothing to show.
import type { TraceInfo } from '../api';

/** Recorded time is less than this of the whole. */
const LEAST = 0.2;

export function areApart({ recordings, fromNs, toNs }: TraceInfo): boolean {
  if (recordings.length < 2) return false;
  let [recorded, endNs] = [0, -Infinity];
  for (const { shiftNs, spanNs } of [...recordings].sort((a, b) => a.shiftNs - b.shiftNs)) {
    recorded += Math.max(0, shiftNs + spanNs - Math.max(shiftNs, endNs));
    endNs = Math.max(endNs, shiftNs + spanNs);
  }
  return recorded < LEAST * (toNs - fromNs);
}
