// I1: the TLS session that the proxy gives a client is resumed at the same host in the same sandbox, and nowhere
// else. A session of one host or sandbox would otherwise vouch for a client at another one.
import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createOrigin } from '../support/recording-origin.ts';
import { type TestAuthority, createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecar, createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

const TOKENS = { one: 'the-token-of-the-first-sandbox', two: 'the-token-of-the-second-sandbox' } as const;
const OWN_TOKEN = 'the-token-of-the-sandbox-with-a-ca';
const HOSTS = ['a.test', 'b.test'] as const;
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;
const origins: TestAuthority = createTestAuthority();
const rules = [{ match_hosts: HOSTS, headers: [{ name: 'X-Key', type: 'plaintext', value: 'injected' }] }];

type Scene = AsyncDisposable & { readonly proxy: TestSidecar; readonly port: number };

async function createSandbox(proxy: TestSidecar, id: keyof typeof TOKENS): Promise<void> {
  const body = { id, token: TOKENS[id], proxy_config: { rules } };
  expect((await proxy.admin('POST', '/v1/sandboxes', body)).status).toBe(201);
}

async function createScene(): Promise<Scene> {
  const origin = await createOrigin({ tls: { authority: origins, names: HOSTS } });
  const proxy = await createTestSidecar({ admin: true, origins });
  await createSandbox(proxy, 'one');
  await createSandbox(proxy, 'two');
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
type Version = (typeof VERSIONS)[number];
type Offer = {
  readonly version: Version;
  readonly host: (typeof HOSTS)[number];
  readonly sandbox: keyof typeof TOKENS;
  readonly session?: Buffer | undefined;
};

/** One request by a client of a sandbox, which offers `session` if it has one. */
async function connectAndRequest(
  { proxy, port }: Scene,
  { version, host, sandbox, session }: Offer,
): Promise<ClientHandshake> {
  const authority = `${host}:${port}`;
  await using client = await WireClient.connect(proxy.port);
  const shown = [`Proxy-Authorization: Bearer ${TOKENS[sandbox]}`];
  expect((await client.openTunnel(authority, shown)).status).toBe(200);
  const secure: TLSSocket = await client.startTls({
    ca: proxy.caPem,
    name: host,
    version,
    ...(session && { session }),
  });
  let given: Buffer | undefined;
  secure.on('session', (ticket: Buffer) => (given = ticket));
  // TLS 1.3 sends the session behind the handshake, so before the response.
  await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  expect((await client.readResponse()).head.status).toBe(200);
  return {
    isResumed: secure.isSessionReused(),
    session: version === 'TLSv1.2' ? secure.getSession() : given,
  };
}

async function firstSession(scene: Scene, offer: Offer): Promise<Buffer> {
  const { session } = await connectAndRequest(scene, offer);
  if (!session) throw new Error('the proxy gave the client no session');
  return session;
}

describe('I1 destination: a session that the proxy gave a client', () => {
  it.each(VERSIONS)(
    'I1 destination: is resumed at the same host in the same sandbox (%s)',
    async (version) => {
      await using scene = await createScene();
      const own = { version, host: 'a.test', sandbox: 'one' } as const;
      const first = await connectAndRequest(scene, own);
      expect(first).toEqual({ isResumed: false, session: expect.any(Buffer) });
      const again = await connectAndRequest(scene, { ...own, session: first.session });
      expect(again.isResumed).toBe(true);
    },
  );

  it.each(VERSIONS)('I1 destination: is not resumed at another host (%s)', async (version) => {
    await using scene = await createScene();
    const own = { version, host: 'a.test', sandbox: 'one' } as const;
    const session = await firstSession(scene, own);
    const other = await connectAndRequest(scene, { ...own, host: 'b.test', session });
    expect(other.isResumed).toBe(false);
  });

  it.each(VERSIONS)('I1 destination: is not resumed in another sandbox (%s)', async (version) => {
    await using scene = await createScene();
    const own = { version, host: 'a.test', sandbox: 'one' } as const;
    const session = await firstSession(scene, own);
    const other = await connectAndRequest(scene, { ...own, sandbox: 'two', session });
    expect(other.isResumed).toBe(false);
  });

  it('I1 destination: is not resumed in a later sandbox of the same id', async () => {
    await using scene = await createScene();
    const own = { version: 'TLSv1.3', host: 'a.test', sandbox: 'one' } as const;
    const session = await firstSession(scene, own);
    expect((await scene.proxy.admin('DELETE', '/v1/sandboxes/one')).status).toBe(204);
    await createSandbox(scene.proxy, 'one');
    expect((await connectAndRequest(scene, { ...own, session })).isResumed).toBe(false);
  });

  it('I1 destination: is that of the CA of the sandbox, which signs for no other', async () => {
    await using scene = await createScene();
    const document = { id: 'own', token: OWN_TOKEN, ca: 'own', proxy_config: { rules } };
    const made = await scene.proxy.admin('POST', '/v1/sandboxes', document);
    const ownCa = String(made.body['ca_pem']);
    const authority = `a.test:${scene.port}`;
    for (const [token, ca, other] of [
      [TOKENS.one, scene.proxy.caPem, ownCa],
      [OWN_TOKEN, ownCa, scene.proxy.caPem],
    ] as const) {
      for (const [trusted, isVerified] of [
        [ca, true],
        [other, false],
      ] as const) {
        await using client = await WireClient.connect(scene.proxy.port);
        await client.openTunnel(authority, [`Proxy-Authorization: Bearer ${token}`]);
        const secured = client.startTls({ ca: trusted, name: 'a.test' });
        if (isVerified) await secured;
        else await expect(secured).rejects.toMatchObject({ code: 'SELF_SIGNED_CERT_IN_CHAIN' });
      }
    }
  });

  it('I1 destination: is not resumed by another proxy with the same CA', async () => {
    await using scene = await createScene();
    await using another = await createScene();
    const own = { version: 'TLSv1.3', host: 'a.test', sandbox: 'one' } as const;
    const session = await firstSession(scene, own);
    expect((await connectAndRequest(another, { ...own, session })).isResumed).toBe(false);
  });
});
