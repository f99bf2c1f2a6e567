// A sandbox with a CA of its own: its clients trust that one and no other, it outlives a restart, and its key is never shown.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import {
  encodeSandboxState,
  loadAuthority,
  newSandboxState,
} from '../../../src/sidecar/state/sandbox-state.ts';
import { createCertificateAuthority } from '../../../src/tls/certificate-authority.ts';
import { createTestSidecar, type TestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { createMemoryStore } from '../state/memory-store.ts';
import { type NamespaceScene, createNamespaceScene } from './namespace-scene.ts';
import { createSandboxScene, keyRules, portOf } from './sandbox-scene.ts';

const SANDBOXES = '/v1/sandboxes';
const rules = { proxy_config: keyRules('a key') };

type Made = { readonly port: number; readonly caPem: string; readonly text: string };

async function create(proxy: TestSidecar, document: object): Promise<Made> {
  const { status, body, text } = await proxy.admin('POST', SANDBOXES, { listen: '127.0.0.1:0', ...document });
  if (status !== 201) throw new Error(`the response was ${status} ${text}`);
  return { port: portOf(body['proxy']), caPem: String(body['ca_pem'] ?? ''), text };
}

/** The certificate of a TLS handshake with the listener, or why the client ended it. */
async function issuerAt(port: number, ca: string): Promise<string> {
  await using client = await WireClient.connect(port);
  await client.openTunnel('api.test:443');
  try {
    const secure = await client.startTls({ ca, name: 'api.test' });
    return secure.getPeerX509Certificate()?.issuer ?? '';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'an error';
  }
}

async function pageAt(port: number, target: string): Promise<string> {
  await using client = await WireClient.connect(port);
  const host = target.startsWith('/') ? 'proxy' : 'sallyport.internal';
  await client.send(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return (await client.readResponse()).text;
}

const DISTRUSTED = 'SELF_SIGNED_CERT_IN_CHAIN';

describe('sandboxes with a CA of their own', () => {
  let proxy: TestSidecar;
  let a: Made;
  let b: Made;
  let plain: Made;
  beforeAll(async () => {
    proxy = await createTestSidecar({ admin: true });
    a = await create(proxy, { id: 'a', ca: 'own', ...rules });
    b = await create(proxy, { id: 'b', ca: 'own', ...rules });
    plain = await create(proxy, { id: 'plain', ...rules });
  });
  afterAll(() => proxy[Symbol.asyncDispose]());

  it('show its certificate and never its key; a sandbox without one shows nothing more than before', async () => {
    expect(new Set([a.caPem, b.caPem, proxy.caPem]).size).toBe(3);
    expect(new X509Certificate(a.caPem)).toMatchObject({ ca: true });
    const shown = await proxy.admin('GET', `${SANDBOXES}/a`);
    expect(shown.body['ca_pem']).toBe(a.caPem);
    const listed = await proxy.admin('GET', SANDBOXES);
    for (const text of [a.text, shown.text, listed.text]) expect(text).not.toContain('PRIVATE KEY');
    expect(plain.text).not.toContain('ca_pem');
    expect((await proxy.admin('GET', '/v1/ca.pem')).text).toBe(proxy.caPem);
  });

  it('are verified by their own clients alone', async () => {
    for (const [made, own] of [
      [a, a.caPem],
      [b, b.caPem],
      [plain, proxy.caPem],
    ] as const) {
      expect(await issuerAt(made.port, own)).toBe(new X509Certificate(own).subject);
      for (const other of [a.caPem, b.caPem, proxy.caPem].filter((pem) => pem !== own))
        expect(await issuerAt(made.port, other)).toBe(DISTRUSTED);
    }
  });

  it('serve their own certificate on their port and at the reserved host', async () => {
    for (const [made, own] of [
      [a, a.caPem],
      [b, b.caPem],
      [plain, proxy.caPem],
    ] as const) {
      expect(await pageAt(made.port, '/ca.pem')).toBe(own);
      expect(await pageAt(made.port, 'http://sallyport.internal/ca.pem')).toBe(own);
      const bundle = await pageAt(made.port, '/ca-bundle.pem');
      expect([a.caPem, b.caPem, proxy.caPem].filter((pem) => bundle.includes(pem))).toEqual([own]);
      const fingerprint = new X509Certificate(own).fingerprint256.replaceAll(':', '').toLowerCase();
      expect(await pageAt(made.port, 'http://sallyport.internal/env')).toContain(fingerprint);
    }
  });

  it('cannot have their CA changed', async () => {
    const changed = await proxy.admin('PATCH', `${SANDBOXES}/a`, { ca: 'own' });
    expect(changed.status).toBe(422);
  });
});

describe('the CA of a sandbox', () => {
  it('is the same after a restart, and is stored sealed alone', async () => {
    await using scene = await createSandboxScene();
    const made = await create(await scene.start(), { id: 'box', ca: 'own', ...rules });
    const again = await scene.start();
    const shown = await again.admin('GET', `${SANDBOXES}/box`);
    expect(shown.body['ca_pem']).toBe(made.caPem);
    expect(await issuerAt(portOf(shown.body['proxy']), made.caPem)).toContain('Sallyport CA');
    for (const name of await readdir(scene.directory, { recursive: true, withFileTypes: true })) {
      if (!name.isFile()) continue;
      const bytes = await readFile(join(name.parentPath, name.name));
      expect(bytes.includes('PRIVATE KEY')).toBe(false);
    }
  });

  it('is another one for the next sandbox of the same id', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const first = await create(proxy, { id: 'box', ca: 'own' });
    await proxy.admin('DELETE', `${SANDBOXES}/box`);
    expect((await create(proxy, { id: 'box', ca: 'own' })).caPem).not.toBe(first.caPem);
  });

  it('that a start cannot use any more disables its sandbox', async () => {
    const { certificatePem, privateKeyPem } = createCertificateAuthority({ now: new Date('2001-01-01') });
    const ca = { certificatePem, key: new Secret(privateKeyPem) };
    const state = newSandboxState('box', { ca, listen: { host: '127.0.0.1', port: 0 } });
    const store = createMemoryStore({ box: encodeSandboxState(state) });
    await using proxy = await createTestSidecar({ admin: true, state: store });
    const { body } = await proxy.admin('GET', `${SANDBOXES}/box`);
    expect(body['failed']).toMatch(
      /^its CA cannot be used \(ca\.certificate_pem: is outside its validity, Dec 31 .* delete the sandbox/,
    );
    // Rules that can be used do not change that.
    const applied = await proxy.admin('PUT', `${SANDBOXES}/box/proxy_config`, keyRules('x'));
    expect(applied.body['warnings']).toMatchObject([{ type: 'closed' }]);
    expect((await proxy.admin('DELETE', `${SANDBOXES}/box`)).status).toBe(204);
  });
});

describe('a CA that the parent process keeps', () => {
  const ca = createCertificateAuthority();
  const other = createCertificateAuthority();
  const old = createCertificateAuthority({ now: new Date('2001-01-01') });
  const leaf = ca.issueLeaf({ host: 'a.test', kind: 'name' }, new Date());
  const [leafPem = ''] = leaf.chainPem.split(/(?<=-----END CERTIFICATE-----\n)/);
  const given = { certificate_pem: ca.certificatePem, private_key_pem: ca.privateKeyPem };
  let scene: NamespaceScene;
  beforeAll(async () => {
    scene = await createNamespaceScene();
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  const document = (wanted: unknown, id = 'box'): object => ({
    id,
    listen: '127.0.0.1:0',
    ca: wanted,
    ...rules,
  });

  const rows: readonly (readonly [string, unknown, string])[] = [
    ['another word', 'shared', 'ca'],
    ['a number', 1, 'ca'],
    ['null', null, 'ca'],
    ['a certificate alone', { certificate_pem: ca.certificatePem }, 'ca'],
    ['a field that is none', { ...given, more: 1 }, 'ca.more'],
    ['text that is none', { ...given, certificate_pem: 'x' }, 'ca.certificate_pem'],
    [
      'two certificates',
      { ...given, certificate_pem: ca.certificatePem + other.certificatePem },
      'ca.certificate_pem',
    ],
    ['a leaf', { ...given, certificate_pem: leafPem, private_key_pem: leaf.keyPem }, 'ca.certificate_pem'],
    [
      'no longer valid',
      { certificate_pem: old.certificatePem, private_key_pem: old.privateKeyPem },
      'ca.certificate_pem',
    ],
    ['with the key of another', { ...given, private_key_pem: other.privateKeyPem }, 'ca.private_key_pem'],
    ['with a key that is none', { ...given, private_key_pem: 'x' }, 'ca.private_key_pem'],
    ['of more than 16 KiB', { ...given, certificate_pem: ca.certificatePem.padEnd(16_385) }, 'ca'],
  ];
  it.each(rows)('is rejected: %s', async (_, wanted, loc) => {
    const { status, body } = await scene.ask('POST', SANDBOXES, document(wanted));
    expect(status).toBe(422);
    const [issue, ...more] = body['detail'] as readonly {
      readonly loc: readonly string[];
      readonly msg: string;
    }[];
    expect([issue?.loc.join('.'), more]).toEqual([`body.${loc}`, []]);
    expect(JSON.stringify(body)).not.toContain('PRIVATE KEY');
  });

  it('signs for its sandbox, and for no other at the same time', async () => {
    const made = await scene.ask('POST', SANDBOXES, document(given, 'first'));
    expect(made).toMatchObject({ status: 201, body: { ca_pem: ca.certificatePem } });
    expect(await issuerAt(portOf(made.body['proxy']), ca.certificatePem)).toContain('Sallyport CA');
    const second = await scene.ask('POST', SANDBOXES, document(given, 'second'));
    expect(second).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'ca'] }] } });
    expect((await scene.ask('DELETE', `${SANDBOXES}/first`)).status).toBe(204);
    expect((await scene.ask('POST', SANDBOXES, document(given, 'second'))).status).toBe(201);
  });

  it('is rejected by a sidecar that stores its sandboxes itself', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const { status, text } = await proxy.admin('POST', SANDBOXES, document(given));
    expect([status, text]).toEqual([422, expect.stringContaining('must be \\"own\\"')]);
  });

  it('must have the key of its certificate', () => {
    const key = new Secret(ca.privateKeyPem);
    expect(loadAuthority({ certificatePem: ca.certificatePem, key })).toMatchObject({
      spkiSha256: ca.spkiSha256,
    });
    expect(loadAuthority({ certificatePem: other.certificatePem, key })).toEqual([
      { loc: ['ca', 'private_key_pem'], msg: 'is not the key of the certificate', type: 'value_error' },
    ]);
  });
});
