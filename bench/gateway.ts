// CPU of a keep-alive request through the gateway, compared with bare http-proxy-3: `npm run bench -- gateway`. Each proxy is a process
// of its own, and so is the target; blocks of requests alternate between the two, and each proxy reports its own CPU.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, createServer } from 'node:http';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { createProxyServer } from 'http-proxy-3';
import { createGateway } from '../src/gateway/gateway.ts';

const CLIENTS = 16;
const WARM_UP_REQUESTS = 20_000;
const BLOCK_REQUESTS = 10_000;
const BLOCKS = 10;

type Role = 'target' | 'gateway' | 'bare';
type Reply = { readonly port: number; readonly cpuMicros: number };

const FIELDS = [
  'Host: app.test',
  'User-Agent: bench',
  'Accept: application/json',
  'Accept-Encoding: gzip',
  'X-Request: 1',
];
const REQUEST = Buffer.from(['GET /v1/things?limit=10 HTTP/1.1', ...FIELDS, '', ''].join('\r\n'));
const BODY = JSON.stringify({ things: Array.from({ length: 10 }, (_, id) => ({ id, name: `thing ${id}` })) });

const role = process.argv[2] as Role | undefined;
if (role === undefined) await compare();
else serve(role, Number(process.argv[3]));

async function compare(): Promise<void> {
  const target = await start('target', 0);
  const { port } = await ask(target);
  const proxies = { gateway: await start('gateway', port), bare: await start('bare', port) };
  const micros = { gateway: [] as number[], bare: [] as number[] };
  for (const child of Object.values(proxies)) await load((await ask(child)).port, WARM_UP_REQUESTS);
  for (let block = 0; block < BLOCKS; block += 1)
    for (const name of ['gateway', 'bare'] as const) {
      const before = await ask(proxies[name]);
      await load(before.port, BLOCK_REQUESTS);
      micros[name].push(((await ask(proxies[name])).cpuMicros - before.cpuMicros) / BLOCK_REQUESTS);
    }
  const [gateway, bare] = [median(micros.gateway), median(micros.bare)];
  const ratios = micros.gateway.map((one, i) => one / (micros.bare[i] ?? 1));
  console.log(`gateway ${gateway.toFixed(1)} µs, bare http-proxy-3 ${bare.toFixed(1)} µs of CPU a request`);
  console.log(
    `ratio ${median(ratios).toFixed(2)} (median of ${BLOCKS} pairs of ${BLOCK_REQUESTS} requests, ${CLIENTS} clients)`,
  );
  for (const child of [target, ...Object.values(proxies)]) child.kill();
}

async function start(name: Role, targetPort: number): Promise<ChildProcess> {
  const child = fork(import.meta.filename, [name, String(targetPort)]);
  await once(child, 'message');
  return child;
}

async function ask(child: ChildProcess): Promise<Reply> {
  const replied = once(child, 'message') as Promise<[Reply]>;
  child.send('status');
  const [reply] = await replied;
  return reply;
}

function serve(name: Role, targetPort: number): void {
  const server = serverOf(name, targetPort);
  const reply = (): void => {
    const { user, system } = process.cpuUsage();
    process.send?.({ port: (server.address() as AddressInfo).port, cpuMicros: user + system });
  };
  server.listen(0, '127.0.0.1', reply);
  process.on('message', reply);
  process.on('disconnect', () => process.exit());
}

function serverOf(name: Role, targetPort: number): Server {
  if (name === 'target')
    return createServer((_, outgoing) => {
      outgoing
        .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': BODY.length })
        .end(BODY);
    });
  if (name === 'bare') {
    const agent = new Agent({ keepAlive: true });
    const proxy = createProxyServer({ target: `http://127.0.0.1:${targetPort}`, agent, xfwd: true });
    return createServer((incoming, outgoing) => proxy.web(incoming, outgoing));
  }
  const log = { debug() {}, info() {}, warn() {}, error: console.error };
  const target = { name: 'app', address: { host: '127.0.0.1', port: targetPort } };
  const limits = { maxConnectionsPerAddress: 1_000 };
  const owner = { findTarget: () => target, authorize: () => ({}), onRecord: () => undefined };
  return createGateway({ ...owner, limits, log }).listener;
}

/** Each client sends its next request when it has read a response. */
async function load(port: number, requests: number): Promise<void> {
  let left = requests;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const socket: Socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      const done = once(socket, 'close');
      let received = '';
      const send = (): void => {
        left -= 1;
        if (left >= 0) socket.write(REQUEST);
        else socket.destroy();
      };
      socket.on('data', (chunk: Buffer) => {
        received += String(chunk);
        if (!received.endsWith(BODY)) return;
        received = '';
        send();
      });
      send();
      await done;
    }),
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}
