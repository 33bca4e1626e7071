// SPDX-License-Identifier: Apache-2.0
// One slow callback of each of some kinds, one after the other, for test/e2e/run_node.py.
const crypto = require('crypto');
const net = require('net');

function burn(ms) {
	const end = process.cpuUsage().user + ms * 1000;
	let sum = 0;
	while (process.cpuUsage().user < end)
		for (let i = 0; i < 10000; i++)
			sum += i;
	return sum;
}

function afterRead(next) {
	const server = net.createServer(socket => socket.on('data', () => {
		burn(60);
		socket.end();
		server.close(next);
	}));
	server.listen(0, '127.0.0.1', () => net.connect(server.address().port, '127.0.0.1').end('x'));
}

afterRead(() => setTimeout(() => {
	burn(60);
	setTimeout(() => setImmediate(() => {
		burn(60);
		crypto.pbkdf2('a', 'b', 1, 16, 'sha1', () => { burn(60); });
	}), 20);
}, 20));
