// SPDX-License-Identifier: Apache-2.0
// The door of the engine.
export { openTrace, type OpenOptions } from './client.ts';
