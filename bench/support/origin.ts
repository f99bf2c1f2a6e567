// A TLS origin that costs as little as Node allows: one canned answer for each request head that ends.
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';

const [certFile = '', keyFile = ''] = process.argv.slice(2);
const body = JSON.stringify({ ok: true, pad: 'x'.repeat(200) });
const answer = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
    `Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nServer: bench\r\nX-Request-Id: 0123456789\r\n\r\n${body}`,
);

const server = createServer(
  { cert: readFileSync(certFile), key: readFileSync(keyFile), noDelay: true },
  (socket) => {
    let tail = '';
    socket.on('data', (chunk) => {
      // Small requests without bodies: every blank line ends one.
      const text = tail + chunk.toString('latin1');
      const parts = text.split('\r\n\r\n');
      tail = parts.pop() ?? '';
      for (let i = 0; i < parts.length; i += 1) socket.write(answer);
    });
    socket.on('error', () => socket.destroy());
  },
);
server.listen(0, '127.0.0.1', () =>
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })),
);
