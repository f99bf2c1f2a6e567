// The connection of a WebSocket after its 101: a stream whose directions end independently, with an idle timeout, which a
// drain does not close before its deadline.
import { describe, expect, it } from 'vitest';
import type { Exchange } from '../../support/recording-origin.ts';
import type { WireClient } from '../../support/wire-client.ts';
import { apiRule, createDataPath, type DataPath, head } from '../data-path.ts';

const switching = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n';
const asking = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: k'];
// Longer than a busy machine makes one of its processes wait.
const IDLE_MS = 500;
// The reason is that of the rule, not of the end.
const wholeRecord = { outcome: 'upgraded', status: 101, reason: 'no_path_match' };

/** How the client reaches the upstream: TLS inside a tunnel, plaintext inside a tunnel, or without a tunnel. */
const ways = ['wss', 'ws in a tunnel', 'ws on the proxy port'] as const;
type Way = (typeof ways)[number];

describe.each(ways)('%s', (way) => {
  it('has a host that goes on after its client has ended', async () => {
    await using scene = await createScene(way, async ({ send, reader, end }) => {
      await send(switching);
      expect((await reader.readThrough('over'))?.toString()).toBe('over');
      expect(await reader.finished).toBe('end');
      await send('x'.repeat(300_000));
      await send('last');
      end();
    });
    await scene.client.send('over');
    scene.client.end();
    expect((await scene.client.readToEnd()).length).toBe(300_004);
    expect(await scene.client.finished).toBe('end');
    expect(await scene.path.proxy.record(0)).toMatchObject(wholeRecord);
  });

  it('has a client that goes on after its host has ended', async () => {
    const received = Promise.withResolvers<string>();
    await using scene = await createScene(way, async ({ send, reader, end }) => {
      await send(`${switching}over`);
      end();
      received.resolve((await reader.readToEnd()).toString());
    });
    expect(await scene.client.readToEnd()).toBe('over');
    await scene.client.send('x'.repeat(300_000));
    await scene.client.send('last');
    scene.client.end();
    expect((await received.promise).length).toBe(300_004);
    expect(await scene.path.proxy.record(0)).toMatchObject(wholeRecord);
  });

  it('whose upstream is silent after its client has ended is closed', async () => {
    await using scene = await createScene(
      way,
      async ({ send }) => {
        await send(switching);
        await new Promise(() => {});
      },
      { half_closed_ms: 50 },
    );
    scene.client.end();
    expect(await scene.path.proxy.record(0)).toMatchObject({
      outcome: 'upgraded',
      reason: 'half_closed_idle',
    });
  });

  it('lives on while the proxy drains, and its end ends the drain', async () => {
    await using scene = await createScene(way, mirror, { drain_ms: 60_000 });
    const closing = scene.path.proxy.sidecar.close();
    await scene.client.send('still here');
    expect(await scene.client.readThrough('here')).toBe('still here');
    scene.client.end();
    expect(await scene.client.finished).toBe('end');
    await closing;
    expect(await scene.path.proxy.record(0)).toMatchObject(wholeRecord);
  });

  it('that outlives the drain is cut', async () => {
    await using scene = await createScene(way, mirror, { drain_ms: 20 });
    await scene.path.proxy.sidecar.close();
    expect(await scene.client.finished).toMatch(/^(end|ECONNRESET)$/);
    expect(await scene.path.proxy.record(0)).toMatchObject({ outcome: 'upgraded', reason: 'reset' });
  });
});

describe('a silence of both', () => {
  it.each(['client', 'host'] as const)('ends it, but not while the %s speaks', async (speaker) => {
    const host = Promise.withResolvers<Exchange>();
    await using scene = await createScene(
      'wss',
      async (exchange) => {
        await exchange.send(switching);
        host.resolve(exchange);
        await new Promise(() => {});
      },
      { tunnel_idle_ms: IDLE_MS },
    );
    const { send, reader } = await host.promise;
    const startedMs = performance.now();
    while (performance.now() - startedMs < 2 * IDLE_MS) {
      if (speaker === 'client') {
        await scene.client.send('x');
        await reader.readSome();
      } else {
        await send('x');
        await scene.client.readSome();
      }
    }
    expect(scene.path.proxy.records()).toEqual([]);
    // And then it is.
    expect(await scene.path.proxy.record(0)).toMatchObject({ outcome: 'upgraded', reason: 'idle' });
    expect(await scene.client.finished).toMatch(/^(end|ECONNRESET)$/);
  });
});

async function mirror({ send, reader, end }: Exchange): Promise<void> {
  await send(switching);
  for (let piece = await reader.readSome(); piece !== undefined; piece = await reader.readSome())
    await send(piece);
  end();
}

type Scene = AsyncDisposable & { readonly path: DataPath; readonly client: WireClient };

/** A client that has read its 101. */
async function createScene(
  way: Way,
  respond: (exchange: Exchange) => Promise<void>,
  timeouts: Readonly<Record<string, number>> = {},
): Promise<Scene> {
  const isClear = way !== 'wss';
  const path = await createDataPath({
    respond,
    isClear,
    config: { timeouts },
    // The host has a rule, so it is intercepted; the path has none, so that cleartext may pass.
    proxyConfig: { rules: [{ ...apiRule, match_paths: ['/v1'] }] },
  });
  const { authority } = path;
  const client = way === 'wss' ? await path.tunnel() : await path.plain();
  if (way === 'ws in a tunnel') expect((await client.openTunnel(authority)).status).toBe(200);
  const target = way === 'ws on the proxy port' ? `http://${authority}/ws` : '/ws';
  await client.send(head(`GET ${target} HTTP/1.1`, `Host: ${authority}`, ...asking));
  expect((await client.readHead()).status).toBe(101);
  return { path, client, [Symbol.asyncDispose]: () => path[Symbol.asyncDispose]() };
}
