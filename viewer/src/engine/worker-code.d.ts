// SPDX-License-Identifier: Apache-2.0
// The worker as one script, by the build (viewer/build.mjs).
declare module 'worker:*' {
  const code: string;
  export default code;
}
