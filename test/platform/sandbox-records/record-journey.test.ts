// From the request of an agent through a real sidecar over a real socket into the database, and back via the API.
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataPath, type DataPathOptions, createDataPath, head, secret } from '../../proxy/data-path.ts';
import { findLeaks } from '../../e2e/canary-search.ts';
import { textCanary } from '../../e2e/canary-values.ts';
import { type Scratch, createScratch } from '../../support/scratch.ts';
import { type RecordScene, createRecordScene } from './record-scene.ts';

const agents = 'agent-canary-b7e0d1';
const hosts = 'origin-canary-5f3c9a';
let scene: RecordScene;
let scratch: Scratch;
let server: Server;
/** Every body that a sidecar sent. */
const sent: string[] = [];
/** What happens to the nth batch; undefined: it is stored and gets its response. */
let mishap: (index: number) => 'response is lost' | 'busy' | undefined = () => undefined;

beforeAll(async () => {
  scene = await createRecordScene();
  scratch = await createScratch();
  server = createServer(async (request, response) => {
    const raw = await text(request);
    const index = sent.push(raw) - 1;
    const mishapOfBatch = mishap(index);
    if (mishapOfBatch === 'busy') return void response.writeHead(503).end();
    const bearer = String(request.headers.authorization).replace('Bearer ', '');
    const reply = await scene.api.ask(request.method ?? '', request.url ?? '', { bearer, raw });
    if (mishapOfBatch === 'response is lost') return void response.socket?.destroy();
    response.writeHead(reply.status, { 'Content-Type': 'application/json' }).end(reply.text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await scratch[Symbol.asyncDispose]();
  await scene[Symbol.asyncDispose]();
});

/** A sidecar that sends its records for `sandbox`. */
async function pathOf(sandbox: string, options: DataPathOptions = {}): Promise<DataPath> {
  const tokenFile = await scratch.write(`${sandbox}.token`, await scene.token(sandbox));
  const { port } = server.address() as AddressInfo;
  const forward = { url: `http://127.0.0.1:${port}`, token_file: tokenFile };
  return createDataPath({ ...options, config: { ...options.config, records: { forward } } });
}

async function ask(path: DataPath, line: string, ...fields: string[]): Promise<void> {
  const client = await path.tunnel();
  const canaries = [`X-Canary: ${agents}`, `Authorization: ${agents}`, `Cookie: ${agents}`];
  const length = `Content-Length: ${agents.length}`;
  await client.send(`${head(line, `Host: ${path.authority}`, ...canaries, length, ...fields)}${agents}`);
  await client.finished;
  client.end();
}

const close = 'Connection: close';
const responded = `HTTP/1.1 200 OK\r\nX-Canary: ${hosts}\r\nContent-Length: ${hosts.length}\r\n\r\n${hosts}`;

type Reported = Readonly<Record<string, unknown>>;

async function keptOf(sandbox: string): Promise<readonly Reported[]> {
  return (await scene.list(sandbox, '?limit=1000')).body.records;
}

/** A record of the platform in the form of the log, and vice versa. */
function comparable({
  level: _level,
  msg: _msg,
  number: _number,
  source: _source,
  ...rest
}: Reported): Reported {
  return rest;
}

const byText = (records: readonly Reported[]): readonly string[] =>
  records.map((record) => JSON.stringify(Object.entries(comparable(record)).toSorted())).toSorted();

async function finish(path: DataPath, sandbox: string): Promise<readonly Reported[]> {
  await path.proxy.sidecar.close();
  const kept = await keptOf(sandbox);
  expect(byText(kept)).toEqual(byText(path.proxy.records()));
  expect(path.proxy.lines.filter(({ msg }) => String(msg).includes('lost'))).toEqual([]);
  return kept;
}

describe('records that a sidecar sends to the platform', () => {
  it('arrive exactly once, equal to those in the log, however an exchange ends', async () => {
    const respond: DataPathOptions['respond'] = async ({ request, send, end }) => {
      if (request.target.startsWith('/cut')) return end();
      if (request.target.startsWith('/upgrade'))
        return send(
          'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
        ).then(end);
      await send(responded);
    };
    const proxyConfig = {
      rules: [
        {
          name: 'naïve “rule” \ud83d\ude00',
          match_hosts: ['api.test'],
          match_paths: ['/v1/*', '/cut', '/upgrade'],
          headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
        },
      ],
      access_control: { deny_list: ['denied.test'] },
    };
    await using path = await pathOf('outcomes', { respond, proxyConfig });
    await ask(path, `POST /v1/x?q=${agents} HTTP/1.1`, close);
    await ask(path, `POST /other?${agents} HTTP/1.1`, close);
    await ask(path, `POST /v1/%2e%2e/?${agents} HTTP/1.1`, close);
    await ask(path, `POST /v1/${'long/'.repeat(300)}?${agents} HTTP/1.1`, close);
    await ask(path, 'POST /cut HTTP/1.1', close);
    const upgrade = await path.tunnel();
    await upgrade.send(
      head(
        'GET /upgrade HTTP/1.1',
        `Host: ${path.authority}`,
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version: 13',
      ),
    );
    await upgrade.finished;
    upgrade.end();
    const blind = await path.plain();
    await blind.openTunnel(`blind.test:${path.origin.port}`);
    blind.reset();
    const denied = await path.plain();
    await denied.openTunnel('denied.test:443');
    await path.proxy.record(7);
    const kept = await finish(path, 'outcomes');
    expect(new Set(kept.map(({ outcome }) => outcome))).toEqual(
      new Set(['injected', 'forwarded', 'refused', 'failed', 'upgraded', 'tunnelled']),
    );
    const canaries = [secret, agents, hosts].map((value) => textCanary('a value', value));
    expect(findLeaks('what was sent', Buffer.from(sent.join('\n')), canaries)).toEqual([]);
  });

  it('arrive exactly once when responses are lost, when the platform is busy, and when the sidecar stops', async () => {
    mishap = (index) => (index % 3 === 0 ? 'response is lost' : index % 3 === 1 ? 'busy' : undefined);
    sent.length = 0;
    await using path = await pathOf('mishaps', {
      respond: ({ readBody, send }) => readBody().then(() => send(responded)),
    });
    for (let i = 0; i < 40; i += 1) await ask(path, `POST /${i} HTTP/1.1`, close);
    const kept = await finish(path, 'mishaps');
    mishap = () => undefined;
    expect(sent.length).toBeGreaterThan(2);
    expect(kept.map(({ path: at }) => at)).toEqual(Array.from({ length: 40 }, (_, i) => `/${39 - i}`));
    expect(kept.map(({ number }) => number)).toEqual(Array.from({ length: 40 }, (_, i) => 39 - i));
  });

  it('arrive when log.records is false and there is no log', async () => {
    await using path = await pathOf('unlogged', {
      config: { log: { records: false } },
      respond: ({ send }) => send(responded),
    });
    await ask(path, 'POST /v1/x HTTP/1.1', close);
    await path.proxy.sidecar.close();
    expect(path.proxy.records()).toEqual([]);
    expect(await keptOf('unlogged')).toMatchObject([{ path: '/v1/x', outcome: 'injected' }]);
  });
});
