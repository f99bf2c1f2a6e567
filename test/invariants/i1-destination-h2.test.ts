// I1 over HTTP/2: on every session, a secret reaches only a peer that proved by certificate the name that the rule matched.
// Every other origin here is hostile and must not receive any part of the secret.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type SecureContext, createSecureContext } from 'node:tls';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CertificateAuthority,
  createCertificateAuthority,
} from '../../src/tls/certificate-authority.ts';
import { encodeFrame } from '../support/h2-frames.ts';
import { type H2Origin, createH2Origin } from '../support/h2-origin.ts';
import { H2WireClient, fieldOf, refusalOf } from '../support/h2-wire-client.ts';
import type { SentField } from '../support/hpack.ts';
import { runs } from '../support/run-size.ts';
import { proxyAuthority } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';
import { INJECTED, SECRET, bearerRule, publicAuthority, tracesOf } from './credential-scene.ts';
import { type H2Scene, arrival, bytesAt, createH2Scene } from './h2-scene.ts';

const HOUR_MS = 3_600_000;
const issuer: CertificateAuthority = createCertificateAuthority({
  commonName: 'Another public CA',
  now: new Date(Date.now() - 1_000 * HOUR_MS),
});
const mallory: CertificateAuthority = createCertificateAuthority({ commonName: 'An untrusted CA' });
const trust = `${issuer.certificatePem}\n${proxyAuthority.certificatePem}`;

type Leaf = { readonly by?: CertificateAuthority; readonly host: string; readonly hours?: number };
type Tls = { readonly authority: typeof publicAuthority; readonly names: readonly string[] };

function contextOf({ by = issuer, host, hours = 0 }: Leaf): SecureContext {
  const kind = /^[0-9.]+$/.test(host) ? 'ipv4' : 'name';
  const { chainPem, keyPem } = by.issueLeaf({ host, kind }, new Date(Date.now() + hours * HOUR_MS));
  return createSecureContext({ cert: chainPem, key: keyPem });
}

/** The certificate is the one that `context` returns at the time of the handshake, for any name. */
function showing(context: () => SecureContext): Tls {
  return { authority: { certificatePem: '', contextFor: context }, names: ['any'] };
}

function tracesAt({ connections, http1 }: H2Origin): readonly string[] {
  const values = connections.flatMap(({ peer }) =>
    [...(peer?.streams.values() ?? [])].flatMap(({ blocks, content }) => [
      content.toString('latin1'),
      ...blocks.flatMap(({ fields }) => fields.map(({ value }) => value)),
    ]),
  );
  return tracesOf(SECRET, [...values, ...http1.transcripts]);
}

function evilOrigin(): Promise<H2Origin> {
  return createH2Origin({ tls: { authority: publicAuthority, names: ['evil.test'] } });
}

describe('I1 destination: an HTTP/2 peer that proves another name, or none', () => {
  const rows: readonly (readonly [why: string, asked: string, leaf: Leaf])[] = [
    ['a certificate for another name', 'api.test', { host: 'evil.test' }],
    ['a certificate for a name below', 'api.test', { host: 'x.api.test' }],
    ['a wildcard certificate one label too short', 'a.b.wild.test', { host: '*.wild.test' }],
    ['a certificate for localhost', 'api.test', { host: 'localhost' }],
    ['a certificate for the address', 'api.test', { host: '127.0.0.1' }],
    ['a name where an address must be proven', '127.0.0.1', { host: 'api.test' }],
    ['a certificate of an untrusted CA', 'api.test', { by: mallory, host: 'api.test' }],
    ["a leaf of the proxy's own CA", 'api.test', { by: proxyAuthority, host: 'api.test' }],
    ['a certificate that has expired', 'api.test', { host: 'api.test', hours: -100 }],
  ];
  const rules = [bearerRule('api.test'), bearerRule('*.wild.test'), bearerRule('127.0.0.1')];
  it.each(rows)('I1 destination: a peer with %s gets no byte of a stream', async (_, asked, leaf) => {
    const context = contextOf(leaf);
    await using scene = await createH2Scene({ rules, trust, origin: { tls: showing(() => context) } });
    await using client = await scene.client(asked);
    // The first stream learned it from the failed dial; the second dials again.
    for (const path of ['/1', '/2']) {
      const response = await client.request(client.fields(path));
      expect([response.status, refusalOf(response)]).toEqual([502, 'upstream_untrusted']);
    }
    expect(scene.origin.connections.map(({ transcript }) => transcript())).not.toContainEqual(
      expect.stringMatching(/./),
    );
  });

  it.each(rows)(
    'I1 destination: a peer with %s gets no byte of a stream after the right host did',
    async (...row) => {
      const [, asked, leaf] = row;
      const [right, wrong] = [contextOf({ host: asked }), contextOf(leaf)];
      let context = right;
      await using scene = await createH2Scene({ rules, trust, origin: { tls: showing(() => context) } });
      await using client = await scene.client(asked);
      expect((await client.request(client.fields('/right'))).status).toBe(200);
      expect(scene.origin.streams[0]?.values('authorization')).toEqual([INJECTED]);
      context = wrong;
      const [session] = scene.origin.connections;
      await session?.goaway(1);
      session?.end();
      await session?.peer?.closed;
      const response = await client.request(client.fields('/wrong'));
      expect([response.status, refusalOf(response)]).toEqual([502, 'upstream_untrusted']);
      expect(scene.origin.streams).toHaveLength(1);
    },
  );

  it('I1 destination: a peer that speaks no TLS sees a ClientHello that offers h2 and nothing else', async () => {
    await using scene = await createH2Scene();
    const seen: Buffer[] = [];
    const peer = createServer((socket) => {
      socket.on('data', (bytes: Buffer) => seen.push(bytes)).on('error', () => undefined);
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
    });
    await once(peer.listen(0, '127.0.0.1'), 'listening');
    const authority = `api.test:${(peer.address() as AddressInfo).port}`;
    await using client = await through(scene, authority);
    expect((await client.request(client.fields('/'))).status).toBe(502);
    expect(Buffer.concat(seen)[0]).toBe(0x16);
    expect(tracesOf(SECRET, [Buffer.concat(seen).toString('latin1')])).toEqual([]);
    await new Promise((resolve) => peer.close(resolve));
  });
});

describe('I1 destination: contradictory names on a stream', () => {
  type Row = readonly [
    why: string,
    pseudo: Readonly<Record<string, string | undefined>>,
    extra: readonly SentField[],
    response: unknown,
  ];
  const none = { ':authority': undefined };
  const rows: readonly Row[] = [
    [':authority names another host', { ':authority': 'EVIL' }, [], [421, 'authority_mismatch']],
    [':authority names another port', { ':authority': 'api.test:444' }, [], [421, 'authority_mismatch']],
    [':authority leaves the port out', { ':authority': 'api.test' }, [], [421, 'authority_mismatch']],
    ['host alone names another host', none, [['host', 'EVIL']], [421, 'authority_mismatch']],
    ['host differs from :authority', {}, [['host', 'EVIL']], [400, 'host_mismatch']],
    [
      'host is right and :authority is not',
      { ':authority': 'EVIL' },
      [['host', 'GOOD']],
      [400, 'host_mismatch'],
    ],
    ['the scheme is http', { ':scheme': 'http' }, [], [400, 'target_invalid']],
    [
      'a CONNECT',
      { ':method': 'CONNECT', ':scheme': undefined, ':path': undefined, ':authority': 'EVIL' },
      [],
      [405, 'method_refused'],
    ],
  ];
  it.each(rows)(
    'I1 destination: %s: refused, and no origin gets a request',
    async (_, pseudo, extra, expected) => {
      await using evil = await evilOrigin();
      await using scene = await createH2Scene();
      const place = (text: string): string =>
        text === 'EVIL' ? `evil.test:${evil.port}` : text === 'GOOD' ? scene.at() : text;
      const named = Object.entries(pseudo).map(([key, text]) => [key, text && place(text)]);
      const fields = extra.map(
        (field): SentField => (Buffer.isBuffer(field) ? field : [field[0], place(field[1])]),
      );
      const { response } = await arrival(scene, fields, Object.fromEntries(named));
      expect([response.status, refusalOf(response)]).toEqual(expected);
      expect([tracesAt(evil), evil.connections.length, bytesAt(scene)]).toEqual([[], 0, '']);
    },
  );

  it('I1 destination: the rule host at the port of another HTTP/2 host gets no credential', async () => {
    await using evil = await evilOrigin();
    await using scene = await createH2Scene();
    await using client = await through(scene, `api.test:${evil.port}`);
    expect(refusalOf(await client.request(client.fields('/')))).toBe('upstream_untrusted');
    expect([evil.streams, tracesAt(evil)]).toEqual([[], []]);
  });

  it('I1 destination: no session begins if SNI names another host', async () => {
    await using scene = await createH2Scene();
    const refused = scene.client('api.test', { tls: { serverName: 'evil.test' } });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME' });
    expect(scene.origin.connections).toEqual([]);
  });

  it('I1 destination: an advertised alternative service is neither used nor relayed', async () => {
    await using evil = await evilOrigin();
    const other = `evil.test:${evil.port}`;
    const text = (bytes: string): Buffer => Buffer.concat([Buffer.of(0, bytes.length), Buffer.from(bytes)]);
    await using scene = await createH2Scene({
      async respond(exchange) {
        // ALTSVC (RFC 7838) and ORIGIN (RFC 8336), and a push promise for another host.
        const alternative = Buffer.concat([Buffer.of(0, 0), Buffer.from(`h2="${other}"`)]);
        await exchange.send(encodeFrame({ type: 10, stream: exchange.request.id, payload: alternative }));
        await exchange.send(encodeFrame({ type: 12, payload: text(`https://${other}`) }));
        await exchange.interim(103, [['alt-svc', `h2="${other}"`]]);
        await exchange.head(302, [
          ['location', `https://${other}/`],
          ['alt-svc', `h2="${other}"`],
        ]);
        await exchange.trailers([['alt-svc', `h2="${other}"`]]);
      },
    });
    await using client = await scene.client();
    const response = await client.request(client.fields('/'));
    expect([response.status, fieldOf(response, 'location')]).toEqual([302, `https://${other}/`]);
    const heads = [response, ...response.interim, { status: 0, headers: response.trailers ?? [] }];
    expect(heads.map((one) => fieldOf(one, 'alt-svc'))).toEqual(heads.map(() => undefined));
    expect(client.frames.filter(({ type }) => typeof type === 'number' || type === 'PUSH_PROMISE')).toEqual(
      [],
    );
    expect((await client.request(client.fields('/again'))).status).toBe(302);
    expect(evil.connections).toEqual([]);
  });
});

describe('I1 destination: plaintext HTTP/2', () => {
  it.each(['on the proxy port', 'in a tunnel'])(
    'I1 destination: prior knowledge %s is refused',
    async (way) => {
      await using scene = await createH2Scene({ rules: [bearerRule('localhost')] });
      await using wire = await scene.wire();
      if (way === 'in a tunnel') expect((await wire.openTunnel(scene.at('localhost'))).status).toBe(200);
      await wire.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
      expect(await wire.readToEnd()).toMatch(/^(HTTP\/1\.1 (400|505) |$)/);
      expect(bytesAt(scene)).toBe('');
    },
  );
});

describe('I1 destination: reused sessions', () => {
  const OTHER = 'rosebud-also-secret';
  const rules = [
    bearerRule('a.test'),
    bearerRule('b.test', {
      headers: [{ name: 'Authorization', type: 'workspace_secret', value: '{OTHER}' }],
    }),
  ];

  it('I1 destination: a session that proved one name never serves another that its certificate covers', async () => {
    // One certificate and one address for both: a browser would coalesce them (RFC 9113 §9.1.1).
    await using scene = await createH2Scene({ names: ['a.test', 'b.test'], rules, secrets: { OTHER } });
    for (const name of ['a.test', 'b.test', 'b.test', 'a.test'])
      expect((await arrival(scene, [], {}, name)).response.status).toBe(200);
    const seen = scene.origin.streams.map(({ connection, authority, values }) => [
      scene.origin.connections[connection]?.serverName,
      authority,
      ...values('authorization'),
    ]);
    const [a, b] = [
      ['a.test', scene.at('a.test'), INJECTED],
      ['b.test', scene.at('b.test'), OTHER],
    ];
    expect(seen).toEqual([a, b, b, a]);
  });

  it('I1 destination: a session opened under an older revision does not serve a newer one', async () => {
    await using scene = await createH2Scene({ names: ['a.test'], rules, secrets: { OTHER } });
    await using client = await scene.client('a.test');
    await client.request(client.fields('/1'));
    const header = { name: 'X-Key', type: 'workspace_secret', value: '{OTHER}' };
    scene.proxy.apply({ rules: [{ match_hosts: ['a.test'], headers: [header] }] });
    expect((await client.request(client.fields('/2'))).status).toBe(200);
    const [old, next] = scene.origin.streams;
    expect([next?.values('x-key'), next?.values('authorization')]).toEqual([[OTHER], []]);
    expect(next?.connection).not.toBe(old?.connection);
  });
});

describe('I1 destination: arbitrary names on a stream', () => {
  it('I1 destination: the secret is sent over HTTP/2 only where all names agree', async () => {
    await using evil = await evilOrigin();
    await using scene = await createH2Scene();
    const hosts = ['api.test', 'API.test.', 'evil.test', 'api.test.evil.test', '127.0.0.1'];
    const authority = fc
      .tuple(fc.constantFrom(...hosts), fc.constantFrom(scene.origin.port, evil.port))
      .map(([host, port]) => `${host}:${port}`);
    const asked = fc.record({ pseudo: fc.option(authority), host: fc.option(authority) });
    await using client = await scene.client();
    const good = [`api.test:${scene.origin.port}`, `API.test.:${scene.origin.port}`];
    await fc.assert(
      fc.asyncProperty(asked, async ({ pseudo, host }) => {
        const before = scene.origin.streams.length;
        const extra: SentField[] = host === null ? [] : [['host', host]];
        await client.request(client.fields('/', extra, { ':authority': pseudo ?? undefined }));
        const named = [pseudo, host].filter((one) => one !== null);
        const agrees = named.length > 0 && named.every((one) => good.includes(one));
        expect(scene.origin.streams.slice(before).map(({ values }) => values('authorization'))).toEqual(
          agrees ? [[INJECTED]] : [],
        );
      }),
      { numRuns: runs(80, 16) },
    );
    expect([evil.connections, tracesAt(evil)]).toEqual([[], []]);
  });
});

async function through(scene: H2Scene, authority: string): Promise<H2WireClient> {
  const tls = { ca: scene.proxy.caPem, name: 'api.test', alpn: ['h2'] };
  const wire = await WireClient.connectThrough(scene.proxy.port, authority, tls);
  return H2WireClient.over(wire, authority);
}
