// Many concurrent clients, some of them slow on purpose: every response goes to its own request, and an endless head does
// not affect other clients.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOrigin, type Exchange, type RecordingOrigin, response } from '../support/recording-origin.ts';
import { runs } from '../support/run-size.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';

const CLIENTS = 200;
const REQUESTS_EACH = runs(20, 5);
const SLOW_CLIENTS = 100;
const HEAD_MS = 700;
const DRIP_MS = 50;

const origins = createTestAuthority();
let origin: RecordingOrigin;
let proxy: SpawnedSallyport;
let ca: string;
let authority: string;

beforeAll(async () => {
  origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] }, respond: responseNonce });
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
  proxy = await spawnSallyport({
    upstreamCaPem: origins.certificatePem,
    proxyConfig: { rules: [{ name: 'api', match_hosts: ['api.test'], headers }] },
    env: { SALLYPORT_TIMEOUTS_HEAD_MS: String(HEAD_MS) },
  });
  ca = await readFile(proxy.caFile, 'utf8');
  authority = `api.test:${origin.port}`;
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await origin.close();
});

describe(`${CLIENTS} keep-alive clients with ${REQUESTS_EACH} requests each`, () => {
  it('all get their own responses, on shared connections', async () => {
    const responses = await Promise.all(Array.from({ length: CLIENTS }, (_, client) => askInTurn(client)));
    expect(responses.flatMap((wrong) => wrong)).toEqual([]);
    expect(origin.requests.filter(({ headers }) => !headers.some(([name]) => name === 'X-Key'))).toEqual([]);
    expect(origin.requests).toHaveLength(CLIENTS * REQUESTS_EACH);
    expect(origin.connections).toBeLessThanOrEqual(CLIENTS);
    expect(proxy.process.stderr).toBe('');
  });
});

describe(`${SLOW_CLIENTS} clients with endless heads`, () => {
  it('get a response at their deadline, however slowly they send, while a bystander is served', async () => {
    const slow = await Promise.all(Array.from({ length: SLOW_CLIENTS }, (_, i) => openSlow(i % 2 === 0)));
    const ends = slow.map((client) => dripUntilEnd(client));
    expect(await askInTurn(-1)).toEqual([]);
    for (const text of await Promise.all(ends)) {
      expect(text).toMatch(/^HTTP\/1\.1 408 .*X-Sallyport-Error: request_timeout/s);
    }
    expect(await askInTurn(-2)).toEqual([]);
    for (const client of slow) await client[Symbol.asyncDispose]();
  });
});

/** Sends one request after the other on one connection; returns what is wrong with the responses. */
async function askInTurn(clientNumber: number): Promise<string[]> {
  await using client = await open();
  const wrong: string[] = [];
  for (let i = 0; i < REQUESTS_EACH; i += 1) {
    const nonce = `${clientNumber}-${i}-${Math.random()}`;
    await client.send(`GET /${nonce} HTTP/1.1\r\nHost: ${authority}\r\nX-Nonce: ${nonce}\r\n\r\n`);
    const { head, text } = await client.readResponse();
    if (head.status !== 200 || text !== `${nonce} /${nonce}`) wrong.push(`${nonce}: ${head.status} ${text}`);
  }
  return wrong;
}

/** On the proxy port, or inside an intercepted tunnel. */
async function openSlow(isInside: boolean): Promise<WireClient> {
  const client = isInside ? await open() : await WireClient.connect(proxy.port);
  await client.send(
    `GET ${isInside ? '' : `http://${authority}`}/ HTTP/1.1\r\nHost: ${authority}\r\nX-Slow: `,
  );
  return client;
}

/** Keeps sending: an idle timeout would never end it. */
async function dripUntilEnd(client: WireClient): Promise<string> {
  const drip = setInterval(() => client.send('z').catch(() => undefined), DRIP_MS);
  const text = await client.readToEnd();
  clearInterval(drip);
  return text;
}

function open(): Promise<WireClient> {
  return WireClient.connectThrough(proxy.port, authority, { ca, name: 'api.test' });
}

async function responseNonce({ request, send }: Exchange): Promise<void> {
  const nonce = request.headers.find(([name]) => name === 'X-Nonce')?.[1] ?? '';
  await send(response(200, [], `${nonce} ${request.target}`));
}
