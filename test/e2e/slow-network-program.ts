// Runs in a network namespace of its own, with the rows as its argument. Each host responds once the proxy has sent its SYN
// and as many repetitions as the row says. Prints what each client got.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import type { LogRecord } from '../support/spawned-process.ts';
import { createNetwork, letRespond, silence, untilSynSent } from '../support/silent-network.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

export type SlowRow = {
  readonly name: string;
  readonly host: string;
  /** Intercepted because of a rule, or a blind tunnel. */
  readonly by: 'rule' | 'tunnel';
  readonly addresses: readonly string[];
  /** The one of the addresses that responds, to which SYN; the others never do. */
  readonly responds: string;
  readonly lostSyns: number;
  /** It is silent again once it has sent an interim response. */
  readonly dies?: boolean;
};

export type SlowResult = {
  readonly name: string;
  /** The status, or the code of the refusal with its cause. */
  readonly seen: string;
  readonly waitedMs: number;
};

const INTERIM = 'HTTP/1.1 103 Early Hints\r\n\r\n';
const rows = JSON.parse(process.argv[2] ?? '[]') as readonly SlowRow[];
const origins = createTestAuthority();
createNetwork(rows.flatMap(({ addresses }) => addresses));
const server = createServer({ SNICallback: (name, done) => done(null, origins.contextFor(name)) });
server.on('secureConnection', (socket) => {
  socket.on('error', () => socket.destroy());
  socket.once('data', () => {
    if (rows.some(({ host, dies }) => dies && host === socket.servername)) socket.write(INTERIM);
    else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
  });
});
await once(server.listen(0, '::'), 'listening');
const { port } = server.address() as AddressInfo;

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'one' }];
const covered = rows.filter(({ by }) => by === 'rule').map(({ host }) => host);
const proxy = await createTestSidecar({
  origins,
  names: Object.fromEntries(rows.map(({ host, addresses }) => [host, addresses])),
  proxyConfig: {
    rules: [{ match_hosts: covered, headers }],
    access_control: { allow_list: rows.map(({ host }) => `${host}:${port}`) },
  },
  config: { timeouts: { drain_ms: 200 } },
});
const results = await Promise.all(rows.map(run));
console.log(JSON.stringify(results));
await proxy[Symbol.asyncDispose]();
// The connections of hosts that have died are still open.
process.exit();

async function run({ name, host, by, responds, lostSyns, dies }: SlowRow): Promise<SlowResult> {
  const authority = `${host}:${port}`;
  if (lostSyns === 0) letRespond(responds);
  else void untilSynSent(responds, lostSyns - 1).then(() => letRespond(responds));
  const startedMs = performance.now();
  const ca = by === 'rule' ? proxy.caPem : origins.certificatePem;
  await using client = await WireClient.connectThrough(proxy.port, authority, { ca, name: host });
  await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  let head = await client.readHead();
  if (dies) {
    await silence(responds);
    head = await client.readHead();
  }
  const waitedMs = performance.now() - startedMs;
  const isRefused = head.headers.some(([field]) => field === 'X-Sallyport-Error');
  if (!isRefused) return { name, seen: String(head.status), waitedMs };
  const { reason, cause } = await recordOf(authority);
  return { name, seen: `${head.status} ${String(reason)}: ${String(cause)}`, waitedMs };
}

async function recordOf(authority: string): Promise<LogRecord> {
  for (let i = 0; ; i += 1) {
    const record = await proxy.record(i);
    if (record['authority'] === authority) return record;
  }
}
