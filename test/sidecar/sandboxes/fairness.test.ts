// Boxes of one sidecar that flood it: the others are served. Each row has a control in which the flood is the client's own.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WireClient } from '../../support/wire-client.ts';
import { type NamespaceScene, createNamespaceScene } from './namespace-scene.ts';
import { portOf } from './sandbox-scene.ts';

/** With so many files, a process may have 64 clients. */
const OPEN_FILES = 512 + 3 * 64;
const MAX_WAITING = 16;
const REQUEST = 'GET http://sallyport.internal/ HTTP/1.1\r\nHost: sallyport.internal\r\n\r\n';

describe('two boxes of one sidecar', () => {
  let scene: NamespaceScene;
  const ports = { flooding: 0, other: 0 };
  beforeAll(async () => {
    scene = await createNamespaceScene({
      openFiles: OPEN_FILES,
      config: { limits: { max_waiting: MAX_WAITING } },
    });
    for (const id of ['flooding', 'other'] as const) {
      const { body } = await scene.ask('POST', '/v1/sandboxes', { id, listen: '127.0.0.1:0' });
      ports[id] = portOf(body['proxy']);
    }
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  async function statusOf(client: WireClient): Promise<number> {
    await client.send(REQUEST);
    return (await client.readResponse()).head.status;
  }

  it.each([
    ['a client of another listener', 'other', 200],
    ['one of the flooded listener, which is its oldest', 'flooding', 503],
  ] as const)('many silent connections: %s', async (_, id, expected) => {
    await using stack = new AsyncDisposableStack();
    const client = stack.use(await WireClient.connect(ports[id]));
    // Accepted before the flood: the listeners are asked in no particular order.
    const probe = stack.use(await WireClient.connect(ports[id]));
    expect(await statusOf(probe)).toBe(200);
    for (let i = 0; i < 3 * MAX_WAITING; i += 1) stack.use(await WireClient.connect(ports.flooding));
    const last = stack.use(await WireClient.connect(ports.flooding));
    expect(await statusOf(last)).toBe(200);
    const status = expected === 200 ? await statusOf(client) : (await client.readResponse()).head.status;
    expect(status).toBe(expected);
  });

  it.each([
    ['a client of another listener', 'other', true],
    ['one of the flooded listener', 'flooding', false],
  ] as const)('many authenticated connections: %s', async (_, id, isServed) => {
    await using stack = new AsyncDisposableStack();
    let accepted = 0;
    for (let i = 0; i < 64; i += 1) {
      const client = stack.use(await WireClient.connect(ports.flooding));
      if ((await statusOf(client)) !== 503) accepted += 1;
    }
    // Half of what the process may have.
    expect(accepted).toBe(32);
    const client = stack.use(await WireClient.connect(ports[id]));
    expect((await statusOf(client)) !== 503).toBe(isServed);
  });

  it('silent connections up to the limit of the process', async () => {
    await using crowded = await createNamespaceScene({ openFiles: OPEN_FILES });
    const created = ['flooding', 'other'].map((id) =>
      crowded.ask('POST', '/v1/sandboxes', { id, listen: '127.0.0.1:0' }),
    );
    const [flooding = 0, other = 0] = (await Promise.all(created)).map(({ body }) => portOf(body['proxy']));
    await using stack = new AsyncDisposableStack();
    for (let i = 0; i < 100; i += 1) stack.use(await WireClient.connect(flooding));
    const client = stack.use(await WireClient.connect(other));
    expect(await statusOf(client)).toBe(200);
  });

  it('connections that are reset at once', async () => {
    for (let i = 0; i < 300; i += 1) {
      const client = await WireClient.connect(ports.flooding);
      client.reset();
    }
    await using client = await WireClient.connect(ports.other);
    expect(await statusOf(client)).not.toBe(503);
  });
});
