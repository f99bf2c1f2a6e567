// Requests to an origin, so many a second, over connections that stay: each leaves a record. Started with the ports of the proxy and of the
// origin, the rate and the seconds; prints how many got a response.
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const [port = 0, origin = 0, rate = 0, seconds = 0] = process.argv.slice(2).map(Number);
const CONNECTIONS = 40;
const REQUEST = `GET http://127.0.0.1:${origin}/ HTTP/1.1\r\nHost: 127.0.0.1:${origin}\r\n\r\n`;
const END = '\r\n\r\nok';

let responded = 0;
const idle: Socket[] = [];

for (let n = 0; n < CONNECTIONS; n += 1) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let tail = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    tail = (tail + text).slice(-END.length);
    if (tail !== END) return;
    tail = '';
    responded += 1;
    idle.push(socket);
  });
  socket.once('connect', () => idle.push(socket));
  socket.on('error', (error) => {
    throw error;
  });
}

const startMs = performance.now();
let sent = 0;
for (let nowMs = startMs; nowMs < startMs + seconds * 1000; nowMs = performance.now()) {
  const due = ((nowMs - startMs) / 1000) * rate;
  while (sent < due) {
    const socket = idle.shift();
    if (socket === undefined) break;
    socket.write(REQUEST);
    sent += 1;
  }
  await delay(1);
}
console.log(responded);
process.exit();
