// I9: every table, buffer and wait has a limit; what exceeds it is refused or delayed. Tests the number of clients, the
// bytes of one client and the bytes of a host.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, vi } from 'vitest';
import { nextTurn } from '../../src/base/steps.ts';
import type { CallbackResolver } from '../../src/callback/resolver.ts';
import { parseAuthority } from '../../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../../src/policy/compile.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import { decideRequest } from '../../src/proxy/gate/inject.ts';
import { closedEgress } from '../support/closed-egress.ts';
import { type Exchange, response } from '../support/recording-origin.ts';
import type { WireClient } from '../support/wire-client.ts';
import { type Scene, createScene, head } from './credential-scene.ts';

const MIB = 1_048_576;
/** Several times what the kernel buffers for the two ends of a connection. */
const HELD_BYTES = 24 * MIB;
const FLOOD_BYTES = 96 * MIB;

const callbacks: CallbackResolver = {
  resolve: () => ({ ok: false, reason: 'there is none' }),
  forget: () => undefined,
  close: async () => undefined,
  cached: 0,
};
const gate = { egress: closedEgress, callbacks, scheme: 'https' as const };

function sceneWith(
  config: object,
  respond: (exchange: Exchange) => Promise<void> = ({ send }) => send(response(200, [], 'fine')),
): Promise<Scene> {
  return createScene({ respond, config: () => ({ timeouts: { drain_ms: 200 }, ...config }) });
}

async function statusOf(client: WireClient): Promise<number> {
  return (await client.readHead()).status;
}

describe('I9 bounded: clients', () => {
  it('I9 bounded: one sandbox has a limited number of connections', async () => {
    await using scene = await sceneWith({ limits: { max_connections: 3 } });
    const clients = await Promise.all(Array.from({ length: 5 }, () => scene.client()));
    const statuses = [];
    for (const client of clients) statuses.push((await client.openTunnel(scene.at())).status);
    expect(statuses).toEqual([200, 200, 200, 503, 503]);
    for (const client of clients) await client[Symbol.asyncDispose]();
  });

  it('I9 bounded: silent connections are limited in number, and each new one evicts the oldest', async () => {
    await using scene = await sceneWith({ limits: { max_waiting: 4 } });
    const clients: WireClient[] = [];
    for (let i = 0; i < 20; i += 1) {
      const client = await scene.client();
      await client.send('G');
      clients.push(client);
    }
    const refused = await Promise.all(clients.slice(0, 16).map(statusOf));
    expect(refused).toEqual(Array.from({ length: 16 }, () => 503));
    for (const client of clients) await client[Symbol.asyncDispose]();
  });
});

describe('I9 bounded: the reserved host', () => {
  const status = head('GET http://sallyport.internal/status', 'sallyport.internal');

  it('I9 bounded: a client gets ten responses of the proxy itself a second, on however many connections', async () => {
    let now = 0;
    await using scene = await createScene({ now: () => now });
    const ask = async (): Promise<number> => {
      await using client = await scene.client();
      await client.send(status);
      return await statusOf(client);
    };
    const statuses = [];
    for (let i = 0; i < 12; i += 1) statuses.push(await ask());
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429, 429]);
    now = 1_000;
    expect(await ask()).toBe(200);
  });

  it('I9 bounded: the script for clients has a limited size, whatever the rules set', async () => {
    // The most that a document may have. In the script each quote has four characters.
    const rules = Array.from({ length: 100 }, (_, r) => ({
      match_hosts: [`h${r}.test`],
      headers: [{ name: 'X-Key', type: 'plaintext', value: 'k' }],
      env_vars: Object.fromEntries(
        Array.from({ length: 100 }, (_value, i) => [`V${r}_${i}`, "'".repeat(70)]),
      ),
    }));
    await using scene = await createScene({ rules });
    await using client = await scene.client();
    await client.send(head('GET http://sallyport.internal/env', 'sallyport.internal'));
    const { text } = await client.readResponse();
    expect(text).toContain('env_vars of the rules are left out');
    expect(text.length).toBeLessThan(300_000);
  });

  it('I9 bounded: the last refusals of a sandbox are kept, and no others', async () => {
    await using scene = await sceneWith({});
    for (let i = 0; i < 30; i += 1) {
      await using refused = await scene.client();
      expect((await refused.openTunnel(`sallyport.internal:${i + 1}`)).status).toBe(403);
    }
    await using client = await scene.client();
    await client.send(status);
    const { refusals } = JSON.parse((await client.readResponse()).text);
    expect(refusals).toHaveLength(20);
  });
});

describe('I9 bounded: the bytes of a client', () => {
  it.each([
    ['fields', 431, (n: number) => Array.from({ length: n }, (_, i) => `X-${i}: v`), 101],
    ['a field', 431, (n: number) => [`X-A: ${'a'.repeat(n)}`], 16_384],
  ] as const)('I9 bounded: a request head has a limited size: %s', async (_, status, fields, n) => {
    await using scene = await sceneWith({});
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at(), fields(n)));
    expect(await statusOf(client)).toBe(status);
    expect(scene.origin.requests).toEqual([]);
  });

  it('I9 bounded: too many pipelined bytes close the connection after the response', async () => {
    const gate = Promise.withResolvers<void>();
    await using scene = await sceneWith({}, async ({ send }) => {
      await gate.promise;
      await send(response(200, [], 'fine'));
    });
    await using client = await scene.tunnel();
    await client.send(head('GET /first', scene.at()));
    await scene.origin.request(0);
    await client.send(head('GET /ahead', scene.at()).repeat(2_000));
    gate.resolve();
    expect((await client.readResponse()).text).toBe('fine');
    expect(await client.readToEnd().catch(() => '')).toBe('');
    expect(scene.origin.requests.map(({ target }) => target)).toEqual(['/first']);
  });

  it('I9 bounded: a request body is subject to back-pressure from a host that does not read', async () => {
    await using scene = await sceneWith({}, async ({ socket }) => void (await once(socket, 'close')));
    await using client = await scene.tunnel();
    await client.send(head('POST /', scene.at(), [`Content-Length: ${FLOOD_BYTES}`]));
    await scene.origin.request(0);
    const { socket } = client;
    let taken = 0;
    // One piece after another, each after the previous one was sent.
    const push = (): void => {
      if (taken >= FLOOD_BYTES) return;
      socket.write(Buffer.alloc(MIB, 'x'), () => {
        taken += MIB;
        push();
      });
    };
    push();
    await stands(() => taken);
    expect(taken).toBeLessThan(HELD_BYTES);
  });
});

describe('I9 bounded: the bytes of a host', () => {
  it('I9 bounded: a response is subject to back-pressure from a client that does not read', async () => {
    let sent = 0;
    await using scene = await sceneWith({}, async ({ send, socket }) => {
      await send('HTTP/1.1 200 OK\r\n\r\n');
      while (!socket.destroyed && sent < FLOOD_BYTES) {
        await send(Buffer.alloc(MIB, 'x'));
        sent += MIB;
      }
    });
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at()));
    await client.readHead();
    client.socket.pause();
    await stands(() => sent);
    expect(sent).toBeLessThan(HELD_BYTES);
  });

  it('I9 bounded: a host can send a limited number of interim responses', async () => {
    await using scene = await sceneWith({}, async ({ send }) => {
      await send('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000));
      await send(response(200, [], 'late'));
    });
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at()));
    let status = await statusOf(client);
    while (status < 200) status = await statusOf(client);
    expect(status).toBe(502);
  });
});

/** Resolves when the value has not changed for some time. */
async function stands(value: () => number): Promise<void> {
  let [last, since] = [value(), performance.now()];
  await vi.waitUntil(
    () => {
      if (value() !== last) [last, since] = [value(), performance.now()];
      return performance.now() - since > 700;
    },
    { interval: 20, timeout: 20_000 },
  );
}

describe('I9 bounded: what a policy keeps', () => {
  it('I9 bounded: masks take a limited number of bytes, however many combinations of rules its hosts have', {
    tags: ['long'],
  }, async () => {
    setFlagsFromString('--expose-gc');
    const usedBytes = async (): Promise<number> => {
      await nextTurn();
      runInNewContext('gc')();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const opaque = (name: string, bytes: number): object => ({
      name,
      type: 'opaque',
      value: randomBytes(bytes).toString('hex').slice(0, bytes),
    });
    const wide = Array.from({ length: 60 }, (_, i) => opaque(`X-Wide-${i}`, 500));
    const hosts = Array.from({ length: 60 }, (_, i) => `h${i}.good.test`);
    const own = hosts.map((host, i) => ({ match_hosts: [host], headers: [opaque(`X-Own-${i}`, 50)] }));
    const parsed = parseProxyConfig({
      rules: [...own, { match_hosts: ['*.good.test'], scrub: 'body', headers: wide }],
    });
    const compiled = parsed.ok ? compileProxyConfig(parsed.value, () => undefined, 1) : parsed;
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
    const policy = compiled.value;
    const before = await usedBytes();
    for (const host of hosts) {
      const authority = parseAuthority(`${host}:443`);
      if (typeof authority === 'string') throw new Error(authority);
      const decision = await decideRequest({ ...gate, policy, authority, path: '/' });
      expect(decision).toHaveProperty('bodyMask');
    }
    // What earlier tests of this process have left behind ends while this one waits.
    await expect.poll(async () => (await usedBytes()) - before).toBeLessThan(16 * MIB);
  });
});
