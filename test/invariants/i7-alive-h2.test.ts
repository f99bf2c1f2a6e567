// I7 over HTTP/2: a time limit ends what a client, a host or a stream does not end, and a client that only causes work
// loses its own connection. Meanwhile other clients are served.
import { describe, expect, it } from 'vitest';
import { pingFrame, settingsFrame } from '../support/h2-frames.ts';
import { refusalOf } from '../support/h2-wire-client.ts';
import { type H2Scene, createH2Scene } from './h2-scene.ts';

const SHORT_MS = 300;
/** Ten times the duration of a response on a shared machine. */
const BUDGET_MS = 2_000;

function sceneWith(timeouts: Readonly<Record<string, number>> = {}): Promise<H2Scene> {
  return createH2Scene({
    respond: async ({ request, response }) => {
      if (request.path === '/big') await response(200, [], Buffer.alloc(1_000_000));
      else if (request.path !== '/silent') await response(200, [], 'fine');
    },
    config: () => ({ timeouts: { drain_ms: 200, ...timeouts } }),
  });
}

async function expectUndisturbed(scene: H2Scene): Promise<void> {
  const startedMs = performance.now();
  await using client = await scene.client();
  expect((await client.request(client.fields('/bystander'))).text).toBe('fine');
  expect(performance.now() - startedMs).toBeLessThan(BUDGET_MS);
}

describe('I7 alive: stalled streams', () => {
  it('I7 alive: a stream with a silent host gets a response at the limit, and other streams are served', async () => {
    await using scene = await sceneWith({ response_idle_ms: SHORT_MS });
    await using client = await scene.client();
    const silent = client.request(client.fields('/silent'));
    expect((await client.request(client.fields('/'))).text).toBe('fine');
    await expectUndisturbed(scene);
    const response = await silent;
    expect([response.status, refusalOf(response)]).toEqual([504, 'upstream_timeout']);
  });

  it('I7 alive: a stream whose client does not read is reset at the limit', async () => {
    await using scene = await sceneWith({ client_idle_ms: SHORT_MS });
    await using client = await scene.client('api.test', { isGranting: false });
    const stream = await client.open(client.fields('/big'), { isEnd: true });
    await expectUndisturbed(scene);
    expect(await stream.resetOrClosed()).toBe('CANCEL');
  });
});

describe('I7 alive: idle connections', () => {
  it('I7 alive: an idle connection is closed at the limit', async () => {
    await using scene = await sceneWith({ client_idle_ms: SHORT_MS });
    await using client = await scene.client();
    await expectUndisturbed(scene);
    expect(await client.goaway()).toMatchObject({ code: 'NO_ERROR' });
    await client.closed;
  });

  it('I7 alive: a connection without a preface is closed at the limit', async () => {
    await using scene = await sceneWith({ client_idle_ms: SHORT_MS });
    await using client = await scene.client('api.test', { hasPreface: false, isAcknowledging: false });
    await expectUndisturbed(scene);
    await client.closed;
  });
});

describe('I7 alive: clients that only cause work', () => {
  it.each([
    ['pings', () => pingFrame()],
    ['settings', (n: number) => settingsFrame({ initial_window_size: n })],
  ] as const)(
    'I7 alive: a client that only causes work loses only its own connection: %s',
    async (_, frame) => {
      await using scene = await sceneWith();
      await using client = await scene.client();
      const frames = Array.from({ length: 2_000 }, (_, n) => frame(n));
      await client.send(...frames);
      await client.closed;
      await expectUndisturbed(scene);
      expect(scene.proxy.records().map(({ reason }) => reason)).toContain('client_flood');
      expect(scene.proxy.lines.filter(({ level }) => level === 'error')).toEqual([]);
    },
  );
});
