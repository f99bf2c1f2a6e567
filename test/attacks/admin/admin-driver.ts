// Plays a row of the corpus `admin` against one sidecar with three sandboxes, and checks that nothing has changed and that
// the data path goes on. The clock stands still during a row and advances a minute between two, so that limits by time count
// the row alone.
import { vi } from 'vitest';
import { headerValues } from '../../support/message-reader.ts';
import { type RecordingOrigin, createOrigin, response } from '../../support/recording-origin.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient, type WireHead } from '../../support/wire-client.ts';
import type { AdminScript, Expectation } from './admin-script.ts';

export type Observation = {
  readonly heads: readonly WireHead[];
  readonly bodies: readonly string[];
  readonly records: readonly string[];
  /** Values of X-Key that the row's requests made arrive at the origin. */
  readonly arrived: readonly string[];
  readonly bytes: string;
  readonly isUnchanged: boolean;
  /** What a client of the default sandbox gets afterwards. */
  readonly inForce: readonly string[];
};

export type AdminStage = AsyncDisposable & {
  readonly proxy: TestSidecar;
  play(script: AdminScript, expected: Expectation): Promise<Observation>;
};

const TOKENS = { a: 'canary-proxy-token-of-tenant-a-1', b: 'canary-proxy-token-of-tenant-b-2' } as const;

const documentOf = (value: string): object => ({
  rules: [{ match_hosts: ['127.0.0.1'], headers: [{ name: 'X-Key', type: 'opaque', value }] }],
});

export async function createAdminStage(): Promise<AdminStage> {
  const origin = await createOrigin({ respond: ({ send }) => send(response(200, [])) });
  const proxy = await createTestSidecar({ admin: true });
  await proxy.admin('PUT', '/v1/proxy_config', documentOf('canary-value-of-default'));
  for (const [name, token] of Object.entries(TOKENS)) {
    const document = { id: `tenant-${name}`, token, proxy_config: documentOf(`canary-value-of-${name}`) };
    await proxy.admin('POST', '/v1/sandboxes', document);
  }
  const standing = await WireClient.connect(proxy.port);
  const before = await snapshot(proxy);
  let turn = 0;
  return {
    proxy,
    async play(script, expected) {
      turn += 1;
      using _clock = clockAt(performance.now() + turn * 61_000);
      const lines = proxy.lines.length;
      const count = origin.requests.length;
      const { heads, bodies, bytes } = await converse(script, expected, proxy, origin);
      // A request that was cut off is recorded later.
      const records = await recordsOf(proxy, lines, expected.records?.length ?? 0);
      const arrived = keysIn(origin, count);
      const isUnchanged = (await snapshot(proxy)) === before;
      return {
        heads,
        bodies,
        records,
        arrived,
        bytes,
        isUnchanged,
        inForce: await askInForce(standing, origin),
      };
    },
    async [Symbol.asyncDispose]() {
      await standing[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await origin.close();
    },
  };
}

type Responses = Pick<Observation, 'heads' | 'bodies' | 'bytes'>;

async function converse(
  { entry, turns, leaves }: AdminScript,
  expected: Expectation,
  proxy: TestSidecar,
  origin: RecordingOrigin,
): Promise<Responses> {
  const adminPort = Number(new URL(proxy.adminUrl).port);
  await using client = await WireClient.connect(entry === 'proxy' ? proxy.port : adminPort);
  const heads: WireHead[] = [];
  const bodies: string[] = [];
  for (const [at, parts] of turns.entries()) {
    const text = parts.map((part) => (typeof part === 'string' ? part : part[0].repeat(part[1]))).join('');
    const sent = client.send(fill(text, adminPort, origin.port, proxy.adminToken));
    // The response may arrive, and the connection end, before all of it was read.
    sent.catch(() => undefined);
    if (leaves === 'FIN' && at === turns.length - 1) client.end();
    if (leaves === 'RST' && at === turns.length - 1) client.reset();
    const isLast = at === turns.length - 1;
    const wanted = isLast ? expected.statuses.length - heads.length : 1;
    for (let i = 0; i < wanted; i += 1) {
      const head = await client.readHead();
      heads.push(head);
      bodies.push(text.startsWith('HEAD ') ? '' : (await client.readBody()).content.toString());
    }
  }
  if (expected.ends) await client.finished;
  return { heads, bodies, bytes: client.transcript };
}

function fill(text: string, adminPort: number, originPort: number, token: string): Buffer {
  const credentials = (one: string): string => Buffer.from(`x:${one}`).toString('base64');
  const filled = text
    .replaceAll('<TOKEN>', token)
    .replaceAll('<A>', credentials(TOKENS.a))
    .replaceAll('<B>', credentials(TOKENS.b))
    .replaceAll('<TOKEN-A>', TOKENS.a)
    .replaceAll('<ADMIN>', String(adminPort))
    .replaceAll('<ORIGIN>', String(originPort));
  return Buffer.from(filled, 'latin1');
}

async function recordsOf(proxy: TestSidecar, from: number, wanted: number): Promise<readonly string[]> {
  const found = (): readonly string[] =>
    proxy.lines
      .slice(from)
      .filter(({ msg }) => msg === 'admin')
      .map(({ status, reason }) => `${status} ${reason ?? 'none'}`);
  await vi.waitUntil(() => found().length >= wanted, { interval: 1, timeout: 5_000 });
  return found();
}

/** All that can be read of every sandbox. Connections come and go. */
async function snapshot(proxy: TestSidecar): Promise<string> {
  const paths = ['default', 'tenant-a', 'tenant-b'].flatMap((id) => [`/v1/sandboxes/${id}/proxy_config`]);
  const responses = await Promise.all(paths.map((path) => proxy.admin('GET', path)));
  const { text } = await proxy.admin('GET', '/v1/sandboxes');
  return JSON.stringify([responses, text.replaceAll(/"connections":\d+/g, '')]);
}

function keysIn(origin: RecordingOrigin, from: number): readonly string[] {
  return origin.requests.slice(from).flatMap((one) => headerValues(one, 'x-key'));
}

async function askInForce(client: WireClient, origin: RecordingOrigin): Promise<readonly string[]> {
  const count = origin.requests.length;
  const authority = `127.0.0.1:${origin.port}`;
  await client.send(`GET http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  await client.readResponse();
  return keysIn(origin, count);
}

function clockAt(ms: number): Disposable {
  const spy = vi.spyOn(performance, 'now').mockReturnValue(ms);
  return { [Symbol.dispose]: () => spy.mockRestore() };
}

/** No response may be cached, sniffed, shared with another origin, or set a cookie. */
const FORBIDDEN_FIELD = /^(?:access-control-|set-cookie$|server$|x-powered-by$)/;

export function violations(expected: Expectation, seen: Observation): readonly string[] {
  const found: string[] = [];
  const same = (what: string, got: unknown, wanted: unknown): void => {
    if (JSON.stringify(got) !== JSON.stringify(wanted))
      found.push(`${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`);
  };
  const { statuses, records = [], bodies, arrived = [], code } = expected;
  same(
    'statuses',
    seen.heads.map(({ status }) => status),
    statuses,
  );
  same('responses in all', [...seen.bytes.matchAll(/HTTP\/1\.1 \d{3} /g)].length, statuses.length);
  same('records', seen.records, records);
  same('arrived', seen.arrived, arrived);
  same('in force afterwards', seen.inForce, ['canary-value-of-default']);
  if (bodies) same('bodies', seen.bodies, bodies);
  if (!seen.isUnchanged) found.push('something has changed');
  if (/canary/i.test(seen.bytes)) found.push('a token or a value is in a response');
  for (const { headers } of seen.heads) {
    const names = headers.map(([name]) => name.toLowerCase());
    found.push(...names.filter((name) => FORBIDDEN_FIELD.test(name)).map((name) => `a field ${name}`));
    if (code !== undefined) same('code', headers.find(([name]) => name === 'X-Sallyport-Error')?.[1], code);
    else if (arrived.length === 0 && !names.includes('x-content-type-options'))
      found.push('a response that may be sniffed');
  }
  return found;
}
