// SPDX-License-Identifier: Apache-2.0
// Messages between the page and its worker. Answers bring the texts that are new with them.
import type { Filter, Order, Selection, TraceInfo, Weight } from '../api.ts';
import type { LoadOptions } from './session.ts';

export type Ask =
  | { id: number; method: 'start'; args: [WebAssembly.Module] }
  | { id: number; method: 'load'; args: [LoadOptions] }
  | { id: number; method: 'rows'; args: [string, string[]?, Filter[]?, number?, Order?] }
  | { id: number; method: 'flame'; args: [Selection, Weight, boolean?] }
  | { id: number; method: 'report'; args: [Selection] };

export type Answer =
  | { id: number; result: unknown; strings: string[] }
  | { id: number; error: string }
  | { info: TraceInfo; strings: string[] }
  | { done: number; total: number };
