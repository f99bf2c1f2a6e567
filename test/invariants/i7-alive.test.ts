// I7: no input ends the process, and none delays unrelated clients. A time limit ends what a client, a host or a tunnel
// does not end. Meanwhile other clients are served.
import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { DocumentParser } from '../../src/sidecar/sandboxes/document-parser.ts';
import { createAdminScene } from '../admin/admin-scene.ts';
import { response } from '../support/recording-origin.ts';
import type { WireClient } from '../support/wire-client.ts';
import { INJECTED, type Scene, createScene, head } from './credential-scene.ts';

const SHORT_MS = 300;
/** Ten times the duration of a response on a shared machine. */
const BUDGET_MS = 2_000;

function sceneWith(timeouts: Readonly<Record<string, number>>): Promise<Scene> {
  return createScene({
    respond: async ({ request, reader, send }) => {
      if (request.target === '/silent') await reader.finished;
      else await send(response(200, [], 'fine'));
    },
    config: () => ({ timeouts: { drain_ms: 200, ...timeouts } }),
  });
}

/** Another client gets a response within the budget meanwhile, with the credential. */
async function expectUndisturbed(scene: Scene): Promise<void> {
  const startedMs = performance.now();
  await using client = await scene.tunnel();
  await client.send(head('GET /bystander', scene.at()));
  expect((await client.readResponse()).text).toBe('fine');
  expect(performance.now() - startedMs).toBeLessThan(BUDGET_MS);
  expect(scene.origin.requests.at(-1)?.headers).toContainEqual(['Authorization', INJECTED]);
}

async function endOf(client: WireClient): Promise<string> {
  return client.readToEnd().catch(() => 'reset');
}

describe('I7 alive: stalled clients', () => {
  it('I7 alive: a client that sends its head byte by byte gets a response at the limit', async () => {
    await using scene = await sceneWith({ head_ms: SHORT_MS });
    await using client = await scene.client();
    await client.send('GET http://api.test/ HTTP/1.1\r\nX-Slow: ');
    const drip = setInterval(() => client.send('z').catch(() => undefined), 30);
    await expectUndisturbed(scene);
    expect(await endOf(client)).toMatch(/^HTTP\/1\.1 408 /);
    clearInterval(drip);
  });

  it('I7 alive: a client that stops in its body gets a response at the limit, and the upstream connection is closed', async () => {
    await using scene = await sceneWith({ client_idle_ms: SHORT_MS });
    await using client = await scene.tunnel();
    await client.send(`${head('POST /silent', scene.at(), ['Content-Length: 9'])}half`);
    await expectUndisturbed(scene);
    expect(await endOf(client)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('I7 alive: a client that sends no next request is disconnected at the limit', async () => {
    await using scene = await sceneWith({ client_idle_ms: SHORT_MS });
    await using client = await scene.tunnel();
    await client.send(head('GET /one', scene.at()));
    await client.readResponse();
    await expectUndisturbed(scene);
    expect(await endOf(client)).toBe('');
  });

  it('I7 alive: a client that stops in its ClientHello is disconnected at the limit', async () => {
    await using scene = await sceneWith({ sniff_ms: SHORT_MS });
    await using client = await scene.client();
    await client.openTunnel(scene.at());
    await client.send('\u0016\u0003\u0001\u0002\u0000');
    await expectUndisturbed(scene);
    expect(await endOf(client)).toBe('');
    // Of the two exchanges either may end first.
    const records = [await scene.proxy.record(0), await scene.proxy.record(1)];
    expect(records.map((record) => record['reason'])).toEqual(
      expect.arrayContaining([undefined, 'sniff_timeout']),
    );
  });

  it('I7 alive: a client that leaves its tunnel idle is disconnected at the limit', async () => {
    await using scene = await sceneWith({ tunnel_idle_ms: SHORT_MS });
    await using client = await scene.client();
    expect((await client.openTunnel(`blind.test:${scene.origin.port}`)).status).toBe(200);
    await expectUndisturbed(scene);
    expect(await endOf(client)).toBe('');
  });
});

describe('I7 alive: silent hosts', () => {
  it('I7 alive: a silent host is abandoned at the limit, and its client gets a response', async () => {
    await using scene = await sceneWith({ response_idle_ms: SHORT_MS });
    await using client = await scene.tunnel();
    await client.send(head('GET /silent', scene.at()));
    await expectUndisturbed(scene);
    expect((await client.readHead()).status).toBe(504);
  });
});

describe('I7 alive: connections that are cut at any point', () => {
  it.each(['', 'CON', '\u0016\u0003\u0001', 'GET / HTTP/1.1\r\n', '\u0000'])(
    'I7 alive: a cut after the bytes %j does not affect the process',
    async (bytes) => {
      await using scene = await sceneWith({});
      for (let i = 0; i < 10; i += 1) {
        await using client = await scene.client();
        if (i % 2 === 0) await client.openTunnel(scene.at());
        if (bytes !== '') await client.send(bytes);
        client.reset();
      }
      await expectUndisturbed(scene);
      expect(scene.proxy.lines.filter(({ level }) => level === 'error')).toEqual([]);
    },
  );
});

describe('I7 alive: writes through the admin API', () => {
  const CONFIG = '/v1/proxy_config';
  const OTHER = '/v1/sandboxes/other/proxy_config';

  it('I7 alive: many writes to one sandbox are rejected, and another can be written', async () => {
    await using scene = await createAdminScene({ limits: { writesPerSecond: 2 } });
    const statuses: number[] = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await scene.ask('PUT', CONFIG, { body: {} })).head.status);
    expect(statuses).toEqual([200, 200, 429]);
    // There is no such sandbox, but the write is admitted.
    expect((await scene.ask('PUT', OTHER, { body: {} })).head.status).toBe(404);
  });

  it('I7 alive: large writes to one sandbox are rejected, and another can be written', async () => {
    await using scene = await createAdminScene({ limits: { bodyBytes: 100 } });
    const body = { pad: 'x'.repeat(80) };
    const statuses: number[] = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await scene.ask('PUT', CONFIG, { body })).head.status);
    expect(statuses).toEqual([200, 200, 429]);
    expect((await scene.ask('PUT', OTHER, { body })).head.status).toBe(404);
  });

  it('I7 alive: a document on which the parser hangs is given up at the limit', async () => {
    const log = createLog('error', { write: () => undefined });
    const program = new URL('../sidecar/sandboxes/broken-parser.ts', import.meta.url);
    const parser = new DocumentParser({ log, program, jobMs: SHORT_MS });
    const hanging = { dies: 'hangs', pad: 'x'.repeat(5_000) };
    expect(await parser.proxyConfig(hanging, { allowWildcards: [], stored: undefined })).toBeUndefined();
  });
});
