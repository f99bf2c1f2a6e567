// I7: no input ends the process, and none holds up whoever has nothing to do with it. What a client, a host or a tunnel does
// not end is ended by a limit; while it lasts, somebody else is served.
import { describe, expect, it } from 'vitest';
import { response } from '../support/recording-origin.ts';
import type { WireClient } from '../support/wire-client.ts';
import { INJECTED, type Scene, createScene, head } from './credential-scene.ts';

const SHORT_MS = 300;
/** Ten times what an answer takes on a machine that others use too. */
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

/** Whoever asks meanwhile is answered within the budget, with the credential. */
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

describe('I7 a client that does not go on', () => {
  it('I7 with its head is answered at the limit, however it drips', async () => {
    await using scene = await sceneWith({ head_ms: SHORT_MS });
    await using client = await scene.client();
    await client.send('GET http://api.test/ HTTP/1.1\r\nX-Slow: ');
    const drip = setInterval(() => client.send('z').catch(() => undefined), 30);
    await expectUndisturbed(scene);
    expect(await endOf(client)).toMatch(/^HTTP\/1\.1 408 /);
    clearInterval(drip);
  });

  it('I7 with its body is answered at the limit, and its host is let go', async () => {
    await using scene = await sceneWith({ client_idle_ms: SHORT_MS });
    await using client = await scene.tunnel();
    await client.send(`${head('POST /silent', scene.at(), ['Content-Length: 9'])}half`);
    await expectUndisturbed(scene);
    expect(await endOf(client)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('I7 with a next request is let go at the limit', async () => {
    await using scene = await sceneWith({ client_idle_ms: SHORT_MS });
    await using client = await scene.tunnel();
    await client.send(head('GET /one', scene.at()));
    await client.readResponse();
    await expectUndisturbed(scene);
    expect(await endOf(client)).toBe('');
  });

  it('I7 with its ClientHello is let go at the limit', async () => {
    await using scene = await sceneWith({ sniff_ms: SHORT_MS });
    await using client = await scene.client();
    await client.openTunnel(scene.at());
    await client.send('\u0016\u0003\u0001\u0002\u0000');
    await expectUndisturbed(scene);
    expect(await endOf(client)).toBe('');
    expect(await scene.proxy.record(1)).toMatchObject({ reason: 'sniff_timeout' });
  });

  it('I7 with its tunnel is let go at the limit', async () => {
    await using scene = await sceneWith({ tunnel_idle_ms: SHORT_MS });
    await using client = await scene.client();
    expect((await client.openTunnel(`blind.test:${scene.origin.port}`)).status).toBe(200);
    await expectUndisturbed(scene);
    expect(await endOf(client)).toBe('');
  });
});

describe('I7 a host that does not go on', () => {
  it('I7 is given up at the limit, and its client is told', async () => {
    await using scene = await sceneWith({ response_idle_ms: SHORT_MS });
    await using client = await scene.tunnel();
    await client.send(head('GET /silent', scene.at()));
    await expectUndisturbed(scene);
    expect((await client.readHead()).status).toBe(504);
  });
});

describe('I7 a connection that is cut where nobody expects it', () => {
  it.each(['', 'CON', '\u0016\u0003\u0001', 'GET / HTTP/1.1\r\n', '\u0000'])(
    'I7 behind the bytes %j leaves the process as it was',
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
