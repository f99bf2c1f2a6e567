// I1: a secret reaches only a peer that proved by certificate the name that the rule matched, or a plaintext destination
// that the operator listed. Every other origin here is hostile and must not receive any part of the secret.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type SecureContext, type TLSSocket, createSecureContext } from 'node:tls';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CertificateAuthority,
  createCertificateAuthority,
} from '../../src/tls/certificate-authority.ts';
import { type Exchange, createOrigin, response } from '../support/recording-origin.ts';
import { runs } from '../support/run-size.ts';
import { proxyAuthority } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';
import {
  INJECTED,
  type Scene,
  SECRET,
  bearerRule,
  createScene,
  head,
  publicAuthority,
  tracesOf,
} from './credential-scene.ts';

const HOUR_MS = 3_600_000;
const issuer: CertificateAuthority = createCertificateAuthority({
  commonName: 'Another public CA',
  now: new Date(Date.now() - 1_000 * HOUR_MS),
});
const mallory: CertificateAuthority = createCertificateAuthority({ commonName: 'An untrusted CA' });

type Leaf = { readonly by?: CertificateAuthority; readonly host: string; readonly hours?: number };

function contextOf({ by = issuer, host, hours = 0 }: Leaf, more: object = {}): SecureContext {
  const kind = /^[0-9.]+$/.test(host) ? 'ipv4' : 'name';
  const { chainPem, keyPem } = by.issueLeaf({ host, kind }, new Date(Date.now() + hours * HOUR_MS));
  return createSecureContext({ cert: chainPem, key: keyPem, ...more });
}

function always(context: SecureContext): { authority: typeof publicAuthority; names: readonly string[] } {
  return { authority: { certificatePem: '', contextFor: () => context }, names: ['any'] };
}

async function statusInTunnel(scene: Scene, name: string, text: string): Promise<number> {
  await using client = await scene.tunnel(name);
  await client.send(text);
  return (await client.readResponse()).head.status;
}

describe('I1 destination: a peer that proves another name, or none', () => {
  const rows: readonly (readonly [why: string, asked: string, leaf: Leaf])[] = [
    ['a certificate for another name', 'api.test', { host: 'evil.test' }],
    ['a certificate for a name below', 'api.test', { host: 'x.api.test' }],
    ['a certificate for the name above', 'x.wild.test', { host: 'wild.test' }],
    ['a wildcard certificate one label too short', 'a.b.wild.test', { host: '*.wild.test' }],
    ['a certificate for localhost', 'api.test', { host: 'localhost' }],
    ['a certificate for the address', 'api.test', { host: '127.0.0.1' }],
    ['a name where an address must be proven', '127.0.0.1', { host: 'api.test' }],
    ['a certificate of an untrusted CA', 'api.test', { by: mallory, host: 'api.test' }],
    ["a leaf of the proxy's own CA", 'api.test', { by: proxyAuthority, host: 'api.test' }],
    ['a certificate that has expired', 'api.test', { host: 'api.test', hours: -100 }],
    ['a certificate that is not valid yet', 'api.test', { host: 'api.test', hours: 48 }],
  ];
  it.each(rows)('I1 destination: a peer with %s gets no byte of a request', async (_, asked, leaf) => {
    await using scene = await createScene({
      rules: [bearerRule('api.test'), bearerRule('*.wild.test'), bearerRule('127.0.0.1')],
      tls: always(contextOf(leaf)),
      trust: `${issuer.certificatePem}\n${proxyAuthority.certificatePem}`,
    });
    await using client = await scene.tunnel(asked);
    await client.send(head('GET /', scene.at(asked)));
    const { head: reply, text } = await client.readResponse();
    expect([reply.status, JSON.parse(text).error]).toEqual([502, 'upstream_untrusted']);
    expect(scene.origin.transcripts.join('')).toBe('');
  });

  it.each(['api.test', 'a.wild.test', '127.0.0.1'])(
    'I1 destination: a proven %s gets the credential',
    async (name) => {
      await using scene = await createScene({
        rules: [bearerRule('api.test'), bearerRule('*.wild.test'), bearerRule('127.0.0.1')],
        tls: always(contextOf({ host: name })),
        trust: issuer.certificatePem,
      });
      expect(await statusInTunnel(scene, name, head('GET /', scene.at(name)))).toBe(200);
      expect(scene.origin.requests[0]?.headers).toContainEqual(['Authorization', INJECTED]);
    },
  );

  it('I1 destination: a peer that speaks no TLS sees a ClientHello and nothing else', async () => {
    await using scene = await createScene();
    const seen: (string | Buffer)[] = [];
    const peer = createServer((socket) => {
      socket.on('data', (bytes) => seen.push(bytes)).on('error', () => undefined);
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
    });
    await once(peer.listen(0, '127.0.0.1'), 'listening');
    const authority = `api.test:${(peer.address() as AddressInfo).port}`;
    await using client = await connectThrough(scene, authority);
    await client.send(head('GET /', authority));
    expect((await client.readResponse()).head.status).toBe(502);
    const bytes = Buffer.concat(seen.map((piece) => Buffer.from(piece)));
    expect(bytes[0]).toBe(0x16);
    expect(tracesOf(SECRET, [bytes.toString('latin1')])).toEqual([]);
    await new Promise((resolve) => peer.close(resolve));
  });
});

describe('I1 destination: contradictory names', () => {
  type Row = readonly [why: string, ask: (scene: Scene, evil: string) => Promise<unknown>, reply: unknown];
  const inTunnel =
    (text: (evil: string, good: string) => string): Row[1] =>
    async (scene, evil) =>
      statusInTunnel(scene, 'api.test', text(evil, scene.at()));
  const rows: readonly Row[] = [
    ['Host names another host', inTunnel((evil) => head('GET /', evil)), 421],
    ['Host names another port', inTunnel(() => head('GET /', 'api.test:444')), 421],
    ['Host leaves the port out', inTunnel(() => head('GET /', 'api.test')), 421],
    ['Host occurs twice', inTunnel((evil, good) => head('GET /', good, [`Host: ${evil}`])), 400],
    ['Host is a list', inTunnel((evil, good) => head('GET /', `${good}, ${evil}`)), 400],
    ['Host has a user name', inTunnel((evil, good) => head('GET /', `${good}@${evil}`)), 400],
    ['Host has a path', inTunnel((evil, good) => head('GET /', `${good}/${evil}`)), 400],
    ['absolute-form names another host', inTunnel((evil, good) => head(`GET https://${evil}/`, good)), 421],
    ['absolute-form has a user name', inTunnel((e, good) => head(`GET https://${good}@${e}/`, good)), 400],
    ['absolute-form has another scheme', inTunnel((_, good) => head(`GET http://${good}/`, good)), 400],
    ['a CONNECT inside the tunnel', inTunnel((evil) => head(`CONNECT ${evil}`, evil)), 405],
    [
      'SNI names another host',
      async (scene) => scene.tunnel('api.test', { serverName: 'evil.test' }).catch(alertOf),
      'ERR_SSL_TLSV1_UNRECOGNIZED_NAME',
    ],
    [
      'CONNECT names another host than SNI and Host',
      async (scene) => {
        await using blind = await createOrigin();
        await using client = await scene.client();
        expect((await client.openTunnel(`evil.test:${blind.port}`)).status).toBe(200);
        await client.send(head('GET /', scene.at()));
        const reply = await client.readResponse();
        expect(tracesOf(SECRET, blind.transcripts)).toEqual([]);
        return reply.head.status;
      },
      200,
    ],
    [
      'the rule host is requested at the port of another host',
      async (scene, evil) => {
        const authority = `api.test${evil.slice(evil.indexOf(':'))}`;
        await using client = await connectThrough(scene, authority);
        await client.send(head('GET /', authority));
        return (await client.readResponse()).head.status;
      },
      502,
    ],
    [
      'on the proxy port, Host names the rule host',
      async (scene, evil) => {
        await using client = await scene.client();
        await client.send(head(`GET http://${evil}/`, scene.at()));
        return (await client.readResponse()).head.status;
      },
      400,
    ],
  ];
  it.each(rows)('I1 destination: %s: the other host gets nothing', async (_, ask, reply) => {
    await using evil = await createOrigin({ tls: { authority: publicAuthority, names: ['evil.test'] } });
    await using scene = await createScene();
    expect(await ask(scene, `evil.test:${evil.port}`)).toBe(reply);
    expect(tracesOf(SECRET, evil.transcripts)).toEqual([]);
    expect(scene.origin.requests).toEqual([]);
  });

  it('I1 destination: without SNI the authority of the tunnel decides', async () => {
    await using scene = await createScene();
    await using client = await scene.tunnel('api.test', { serverName: '' });
    await client.send(head('GET /', scene.at()));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(scene.origin.requests[0]).toMatchObject({ serverName: 'api.test' });
  });

  it('I1 destination: a redirect is relayed, not followed', async () => {
    await using evil = await createOrigin({ tls: { authority: publicAuthority, names: ['evil.test'] } });
    const location = `https://evil.test:${evil.port}/`;
    const alternative = `h3="evil.test:${evil.port}"; ma=86400`;
    const redirect = response(302, [
      ['Location', location],
      ['Alt-Svc', alternative],
    ]);
    await using scene = await createScene({ respond: ({ send }) => send(redirect) });
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at()));
    const { head: reply } = await client.readResponse();
    expect(reply.status).toBe(302);
    expect(reply.headers).toContainEqual(['Location', location]);
    expect(reply.text).not.toContain(alternative);
    expect(evil.connections).toBe(0);
  });
});

describe('I1 destination: plaintext', () => {
  type Row = readonly [
    why: string,
    name: string,
    listed: ((port: number) => Readonly<Record<string, unknown>>) | undefined,
    status: number,
  ];
  const rows: readonly Row[] = [
    ['a name that resolves to loopback', 'api.test', undefined, 403],
    ['a listed name', 'api.test', (port) => ({ inject_cleartext: [`api.test:${port}`] }), 200],
    ['a name listed with another port', 'api.test', () => ({ inject_cleartext: ['api.test:1'] }), 403],
    [
      'a name inside a listed range',
      'api.test',
      (port) => ({ inject_cleartext: [`127.0.0.0/8:${port}`] }),
      403,
    ],
    ['a loopback address literal', '127.0.0.1', undefined, 200],
    ['the name localhost', 'localhost', undefined, 200],
    ['a name below localhost', 'api.localhost', undefined, 200],
    ['a name that only ends in localhost', 'notlocalhost', undefined, 403],
    ['localhost of a proxy with an exposed listener', 'localhost', () => exposed, 403],
    [
      'a listed range',
      '127.0.0.1',
      (port) => ({ ...exposed, inject_cleartext: [`127.0.0.1/32:${port}`] }),
      200,
    ],
  ];
  const exposed = { listen: '0.0.0.0:0', auth: 'none', egress: { allow_private: ['127.0.0.0/8', '::1'] } };
  const ways = ['in a tunnel', 'on the proxy port'] as const;
  const cases = rows.flatMap(([why, name, listed, status]) =>
    ways.map((way) => [why, way, status, name, listed] as const),
  );
  it.each(cases)('I1 destination: a request for %s %s gets %i', async (_, way, status, name, listed) => {
    await using scene = await createScene({
      tls: 'clear',
      rules: [bearerRule(name, { match_paths: ['/v1/*'] })],
      config: listed,
    });
    await using client = await scene.client();
    if (way === 'in a tunnel') expect((await client.openTunnel(scene.at(name))).status).toBe(200);
    const prefix = way === 'in a tunnel' ? '' : `http://${scene.at(name)}`;
    await client.send(head(`GET ${prefix}/other`, scene.at(name)));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(tracesOf(SECRET, scene.origin.transcripts)).toEqual([]);
    await client.send(head(`GET ${prefix}/v1/x`, scene.at(name)));
    const reply = await client.readResponse();
    expect(reply.head.status).toBe(status);
    if (status === 403) expect(JSON.parse(reply.text).error).toBe('cleartext_refused');
    expect(tracesOf(SECRET, scene.origin.transcripts)).toEqual(
      status === 200 ? expect.arrayContaining([SECRET]) : [],
    );
  });
});

describe('I1 destination: reused connections', () => {
  const OTHER = 'rosebud-also-secret';
  const rules = [
    bearerRule('a.test'),
    bearerRule('b.test', {
      headers: [{ name: 'Authorization', type: 'workspace_secret', value: '{OTHER}' }],
    }),
  ];

  it('I1 destination: a connection that proved one name never serves another', async () => {
    await using scene = await createScene({ names: ['a.test', 'b.test'], rules, secrets: { OTHER } });
    for (const name of ['a.test', 'b.test', 'b.test', 'a.test']) {
      expect(await statusInTunnel(scene, name, head('GET /', scene.at(name)))).toBe(200);
    }
    const seen = scene.origin.requests.map(({ serverName, connection, headers }) => [
      serverName,
      connection,
      headers.find(([key]) => key === 'Authorization')?.[1],
    ]);
    const [a, b] = [
      ['a.test', 0, INJECTED],
      ['b.test', 1, OTHER],
    ] as const;
    expect(seen).toEqual([a, b, b, a]);
  });

  it('I1 destination: a plaintext connection never serves a request that was decided as https', async () => {
    await using scene = await createScene({
      tls: 'clear',
      rules: [bearerRule('localhost')],
      // The origin waits for a request, the proxy for a ServerHello.
      config: () => ({ timeouts: { connect_ms: 100 } }),
    });
    await using clear = await scene.client();
    await clear.send(head(`GET http://${scene.at('localhost')}/clear`, scene.at('localhost')));
    expect((await clear.readResponse()).head.status).toBe(200);
    expect(await statusInTunnel(scene, 'localhost', head('GET /secure', scene.at('localhost')))).toBe(504);
    expect(scene.origin.requests.map(({ target }) => target)).toEqual(['/clear']);
  });

  it('I1 destination: a connection opened under an older revision does not serve a newer one', async () => {
    await using scene = await createScene({ names: ['a.test'], rules, secrets: { OTHER } });
    await statusInTunnel(scene, 'a.test', head('GET /1', scene.at('a.test')));
    const header = { name: 'X-Key', type: 'workspace_secret', value: '{OTHER}' };
    scene.proxy.apply({ rules: [{ match_hosts: ['a.test'], headers: [header] }] });
    await statusInTunnel(scene, 'a.test', head('GET /2', scene.at('a.test')));
    expect(scene.origin.requests.map(({ connection }) => connection)).toEqual([0, 1]);
    expect(tracesOf(SECRET, [scene.origin.transcripts[1] ?? ''])).toEqual([]);
    expect(scene.origin.requests[1]?.headers).toContainEqual(['X-Key', OTHER]);
  });

  it('I1 destination: a TLS session of one host is not resumed at another', async () => {
    // Both servers share ticket keys, as the servers of one CDN do. The hosts are addresses: without SNI nothing else
    // distinguishes the sessions.
    const tls = always(contextOf({ host: '127.0.0.1' }, { ticketKeys: Buffer.alloc(48, 7) }));
    const reused: boolean[] = [];
    const respond = async (exchange: Exchange): Promise<void> => {
      reused.push((exchange.socket as TLSSocket).isSessionReused());
      await exchange.send('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      exchange.end();
    };
    await using evil = await createOrigin({ address: '127.0.0.2', tls, respond });
    await using scene = await createScene({
      rules: [bearerRule('127.0.0.1'), bearerRule('127.0.0.2')],
      tls,
      trust: issuer.certificatePem,
      respond,
    });
    for (let i = 0; i < 2; i += 1)
      expect(await statusInTunnel(scene, '127.0.0.1', head('GET /', scene.at('127.0.0.1')))).toBe(200);
    expect(reused).toEqual([false, true]);
    const authority = `127.0.0.2:${evil.port}`;
    await using client = await connectThrough(scene, authority, '127.0.0.2');
    await client.send(head('GET /', authority));
    expect((await client.readResponse()).head.status).toBe(502);
    expect(evil.transcripts.join('')).toBe('');
  });
});

describe('I1 destination: arbitrary names', () => {
  it('I1 destination: the secret is sent only where all names agree', async () => {
    await using evil = await createOrigin({ tls: { authority: publicAuthority, names: ['evil.test'] } });
    await using scene = await createScene();
    const hosts = ['api.test', 'API.test.', 'evil.test', 'api.test.evil.test', 'localhost', '127.0.0.1'];
    const ports = [scene.origin.port, evil.port];
    const authority = fc
      .tuple(fc.constantFrom(...hosts), fc.constantFrom(...ports))
      .map(([host, port]) => `${host}:${port}`);
    const request = fc.record({
      connect: authority,
      serverName: fc.constantFrom('api.test', 'evil.test', ''),
      host: authority,
      absolute: fc.option(authority),
    });
    await fc.assert(
      fc.asyncProperty(request, async ({ connect, serverName, host, absolute }) => {
        const before = scene.origin.requests.length;
        const target = absolute === null ? '/' : `https://${absolute}/`;
        const tls = {
          ca: `${scene.proxy.caPem}\n${publicAuthority.certificatePem}`,
          name: nameOf(connect),
          serverName,
        };
        const client = await WireClient.connect(scene.proxy.port);
        try {
          if ((await client.openTunnel(connect)).status !== 200) return;
          await client.startTls(tls);
          await client.send(head(`GET ${target}`, host));
          await client.readResponse();
        } catch (error) {
          // A handshake that the proxy or the other origin refused.
          expect(error).toBeInstanceOf(Error);
        } finally {
          await client[Symbol.asyncDispose]();
        }
        expect(tracesOf(SECRET, evil.transcripts)).toEqual([]);
        const good = [`api.test:${scene.origin.port}`, `API.test.:${scene.origin.port}`];
        const agrees =
          good.includes(connect) && good.includes(host) && (absolute === null || good.includes(absolute));
        for (const { headers } of scene.origin.requests.slice(before)) {
          const isInjected = headers.some(([, value]) => value.includes(SECRET));
          expect(isInjected).toBe(agrees && serverName !== 'evil.test');
        }
      }),
      { numRuns: runs(80, 16) },
    );
  });
});

function connectThrough(scene: Scene, authority: string, name = 'api.test'): Promise<WireClient> {
  return WireClient.connectThrough(scene.proxy.port, authority, { ca: scene.proxy.caPem, name });
}

/** The name that a client verifies when it dials this authority. */
function nameOf(authority: string): string {
  const host = authority.slice(0, authority.indexOf(':')).toLowerCase();
  return host.endsWith('.') ? host.slice(0, -1) : host;
}

function alertOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : error;
}
