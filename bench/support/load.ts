// A load client on fixed keep-alive connections: CONNECT, TLS, one request after the other on each. Prints the
// count, the time and exact percentiles of the latencies.
import { readFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { type TLSSocket, connect as connectTls } from 'node:tls';

const [proxyPort = '', authority = '', caFile = '', clients = '1', requests = '1000'] = process.argv.slice(2);
const host = authority.slice(0, authority.lastIndexOf(':'));
const ca = readFileSync(caFile);
const request = Buffer.from(
  `GET /v1/models?limit=20 HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: bench/1.0\r\nAccept: application/json\r\n` +
    `Accept-Encoding: identity\r\nContent-Type: application/json\r\nX-Trace: 4bf92f3577b34da6\r\nAuthorization: Bearer placeholder\r\n\r\n`,
);

async function open(): Promise<TLSSocket> {
  const raw = connectTcp(Number(proxyPort), '127.0.0.1');
  await new Promise((resolve) => raw.once('connect', resolve));
  raw.setNoDelay(true);
  raw.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  await new Promise((resolve) => raw.once('data', resolve));
  const socket = connectTls({ socket: raw, host, servername: host, ca, ALPNProtocols: ['http/1.1'] });
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  return socket;
}

/** Runs requests on one connection until `left` is used up. Answers have one size, learned from the first. */
function drive(socket: TLSSocket, budget: { left: number }, latencies: number[]): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let size = 0;
  let got = 0;
  let head = '';
  let sentAt = 0;
  const next = (): void => {
    if (budget.left <= 0) return resolve();
    budget.left -= 1;
    got = 0;
    sentAt = performance.now();
    socket.write(request);
  };
  socket.on('data', (chunk) => {
    got += chunk.length;
    if (size === 0) {
      head += chunk.toString('latin1');
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return;
      if (!head.startsWith('HTTP/1.1 200')) return reject(new Error(head.slice(0, 300)));
      size = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
    }
    if (got < size) return;
    latencies.push(performance.now() - sentAt);
    next();
  });
  socket.on('error', reject).on('close', () => reject(new Error('closed')));
  next();
  return promise;
}

const sockets = await Promise.all(Array.from({ length: Number(clients) }, open));
const latencies: number[] = [];
const budget = { left: Number(requests) };
const startedMs = performance.now();
await Promise.all(sockets.map((socket) => drive(socket, budget, latencies)));
const seconds = (performance.now() - startedMs) / 1000;
latencies.sort((a, b) => a - b);
const at = (share: number): number =>
  latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
console.log(
  JSON.stringify({ requests: latencies.length, seconds, p50: at(0.5), p99: at(0.99), p999: at(0.999) }),
);
process.exit(0);
