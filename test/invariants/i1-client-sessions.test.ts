// I1 and I8: the TLS session that the proxy gives a client is resumed at the same host in the same sandbox, and nowhere
// else. A session of one host or sandbox would otherwise vouch for a client at another one.
import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createOrigin } from '../support/recording-origin.ts';
import { type TestAuthority, createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecar, createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

const TOKENS = { one: 'the-token-of-the-first-sandbox', two: 'the-token-of-the-second-sandbox' } as const;
const HOSTS = ['a.test', 'b.test'];
const origins: TestAuthority = createTestAuthority();
const rules = [{ match_hosts: HOSTS, headers: [{ name: 'X-Key', type: 'plaintext', value: 'injected' }] }];

type Scene = AsyncDisposable & { readonly proxy: TestSidecar; readonly port: number };

async function createScene(): Promise<Scene> {
  const origin = await createOrigin({ tls: { authority: origins, names: HOSTS } });
  const proxy = await createTestSidecar({ admin: true, origins });
  for (const [id, token] of Object.entries(TOKENS))
    await proxy.admin('POST', '/v1/sandboxes', { id, token, proxy_config: { rules } });
  return {
    proxy,
    port: origin.port,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await origin.close();
    },
  };
}

type ClientHandshake = { readonly isResumed: boolean; readonly session: Buffer | undefined };

/** One request by a client of a sandbox, which offers `session` if it has one. */
async function connectAndRequest(
  { proxy, port }: Scene,
  { host, sandbox, session }: { host: string; sandbox: keyof typeof TOKENS; session?: Buffer | undefined },
): Promise<ClientHandshake> {
  const authority = `${host}:${port}`;
  await using client = await WireClient.connect(proxy.port);
  const shown = [`Proxy-Authorization: Bearer ${TOKENS[sandbox]}`];
  expect((await client.openTunnel(authority, shown)).status).toBe(200);
  const secure: TLSSocket = await client.startTls({
    ca: proxy.caPem,
    name: host,
    ...(session && { session }),
  });
  let given: Buffer | undefined;
  secure.on('session', (ticket: Buffer) => (given = ticket));
  // TLS 1.3 sends the session behind the handshake, so before the response.
  await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  expect((await client.readResponse()).head.status).toBe(200);
  return { isResumed: secure.isSessionReused(), session: given };
}

describe('I1 destination: a session that the proxy gave a client', () => {
  it('I1 destination: is resumed at the same host in the same sandbox', async () => {
    await using scene = await createScene();
    const first = await connectAndRequest(scene, { host: 'a.test', sandbox: 'one' });
    expect(first).toEqual({ isResumed: false, session: expect.any(Buffer) });
    const again = await connectAndRequest(scene, { host: 'a.test', sandbox: 'one', session: first.session });
    expect(again.isResumed).toBe(true);
  });

  it('I1 destination: is not resumed at another host', async () => {
    await using scene = await createScene();
    const { session } = await connectAndRequest(scene, { host: 'a.test', sandbox: 'one' });
    expect((await connectAndRequest(scene, { host: 'b.test', sandbox: 'one', session })).isResumed).toBe(
      false,
    );
  });

  it('I8 reach: is not resumed in another sandbox', async () => {
    await using scene = await createScene();
    const { session } = await connectAndRequest(scene, { host: 'a.test', sandbox: 'one' });
    expect((await connectAndRequest(scene, { host: 'a.test', sandbox: 'two', session })).isResumed).toBe(
      false,
    );
  });
});
