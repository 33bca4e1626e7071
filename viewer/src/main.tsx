// SPDX-License-Identifier: Apache-2.0
// Entry of the bundle.
import { openTrace } from './engine/client';
import { start } from './ui/start';
import { decodePart } from './ui/url';
import './ui/styles/base.css';
import './ui/styles/page.css';
import './ui/styles/panels.css';

const root = document.getElementById('root');
if (root) void start(root, (onProgress) => openTrace({ onProgress, ...decodePart(location.hash) }));
