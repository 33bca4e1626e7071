// SPDX-License-Identifier: Apache-2.0
// A loop of node, which waits for a child process inside a tick.
const { execFileSync } = require('child_process');
const blocks = [];
let n = 0;
const timer = setInterval(() => {
	n++;
	if (n === 8 || n === 12) {
		const begin = process.hrtime.bigint();
		execFileSync('sleep', ['0.2']);
		blocks.push(['epoll_', Number(begin), Number(process.hrtime.bigint())]);
	}
	if (n === 20) {
		clearInterval(timer);
		console.log(JSON.stringify({ loop: 'epoll_wait loop', ticks: n, over: 0, blocks, more: 60 }));
	}
}, 3);
