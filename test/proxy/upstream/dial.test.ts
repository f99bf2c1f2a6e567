// From a judged authority to a connection that proved its name: certificates that fail, sessions that may not stand in
// for a certificate, deadlines, and clients that give up. Until a socket is handed out, nothing of a request exists.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { BoundedCache } from '../../../src/base/bounded-cache.ts';
import { type DialTarget, type Dialler, createDialler } from '../../../src/proxy/upstream/dial.ts';
import { type ConnectionQuota, createConnectionQuota } from '../../../src/proxy/upstream/connection-quota.ts';
import { isRefusal } from '../../../src/proxy/refusal.ts';
import { createCertificateAuthority } from '../../../src/tls/certificate-authority.ts';
import { type TrustSet, createTrustSet } from '../../../src/tls/trust.ts';
import { closedEgress } from '../../support/closed-egress.ts';
import { createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { apiRule, errorOf, head, origins, secret } from '../data-path.ts';
import { authorityOf } from '../request-head.ts';

const day = 86_400_000;
const publicCa = createCertificateAuthority({ commonName: 'Public', now: new Date(Date.now() - 300 * day) });
const foreignCa = createCertificateAuthority({ commonName: 'Foreign CA' });
const ownCa = createCertificateAuthority({ commonName: 'Own' });
const trust = createTrustSet({
  rootsPem: [publicCa.certificatePem],
  extraPem: ownCa.certificatePem,
  without: ownCa,
});

type Leaf = { readonly host: string; readonly by?: typeof publicCa; readonly daysAgo?: number };

function contextOf({ host, by = publicCa, daysAgo = 0 }: Leaf): SecureContext {
  const kind = /^[0-9.]+$/.test(host) ? 'ipv4' : 'name';
  const leaf = by.issueLeaf({ host, kind }, new Date(Date.now() - daysAgo * day));
  return createSecureContext({ cert: leaf.chainPem, key: leaf.keyPem });
}

const selfSigned = createSecureContext({ cert: foreignCa.certificatePem, key: foreignCa.privateKeyPem });

type Peer = AsyncDisposable & {
  readonly port: number;
  readonly application: () => string;
  readonly accepted: number;
};

/** A TLS server that keeps what arrives after its handshake, and greets, so that TLS 1.3 hands over its ticket. */
async function createPeer(context: () => SecureContext): Promise<Peer> {
  let application = '';
  return listenRaw(
    (raw) => {
      const socket = new TLSSocket(raw, { isServer: true, secureContext: context() });
      socket.on('data', (chunk) => void (application += chunk.toString('latin1')));
      socket.on('secure', () => socket.write('greeting'));
      socket.on('error', () => raw.destroy());
    },
    () => application,
  );
}

async function listenRaw(serve: (raw: Socket) => void, application = (): string => ''): Promise<Peer> {
  const sockets: Socket[] = [];
  const server: Server = createServer((raw) => {
    sockets.push(raw);
    raw.on('error', () => raw.destroy());
    serve(raw);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    application,
    get accepted() {
      return sockets.length;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function dialler(
  options: {
    trust?: TrustSet;
    sessions?: BoundedCache<Buffer>;
    connectMs?: number;
    quota?: ConnectionQuota;
  } = {},
): Dialler {
  return createDialler({
    resolver: { resolve: async () => [{ address: '127.0.0.1', family: 4 }], forget: () => {} },
    egress: { ...closedEgress, allowLoopback: true },
    trust: options.trust ?? trust,
    sessions: options.sessions ?? new BoundedCache({ max: 10 }),
    connectMs: options.connectMs ?? 5_000,
    quota: options.quota ?? createConnectionQuota(100),
  });
}

function target(authority: string, scheme: DialTarget['scheme'] = 'https'): DialTarget {
  return {
    authority: authorityOf(authority),
    scheme,
    alpn: ['http/1.1'],
    named: 'exact',
    isPortListed: false,
    denies: () => false,
  };
}

/** `ready`, or the code and cause of the refusal. */
async function dialled(by: Dialler, to: DialTarget): Promise<string> {
  const result = await by.dial(to, new AbortController().signal);
  if (isRefusal(result)) return `${result.refused}: ${result.cause}`;
  result.on('error', () => {});
  await once(result, 'data');
  result.destroy();
  return 'ready';
}

describe('a host that does not prove its name', () => {
  const rows: readonly (readonly [string, string, SecureContext, string])[] = [
    [
      'the name of another host',
      'api.test',
      contextOf({ host: 'other.test' }),
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [
      'localhost, asked for a name',
      'api.test',
      contextOf({ host: 'localhost' }),
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [
      'localhost, asked for an address',
      '127.0.0.1',
      contextOf({ host: 'localhost' }),
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [
      'its address, asked for a name',
      'api.test',
      contextOf({ host: '127.0.0.1' }),
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    ['another address', '127.0.0.1', contextOf({ host: '127.0.0.2' }), 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['a certificate signed by itself', 'api.test', selfSigned, 'INVALID_PURPOSE'],
    [
      'an authority that nobody trusts',
      'api.test',
      contextOf({ host: 'api.test', by: foreignCa }),
      'SELF_SIGNED_CERT_IN_CHAIN',
    ],
    [
      'our own authority, though the operator listed it',
      'api.test',
      contextOf({ host: 'api.test', by: ownCa }),
      'SELF_SIGNED_CERT_IN_CHAIN',
    ],
    [
      'a certificate that has expired',
      'api.test',
      contextOf({ host: 'api.test', daysAgo: 30 }),
      'CERT_HAS_EXPIRED',
    ],
    [
      'a certificate of tomorrow',
      'api.test',
      contextOf({ host: 'api.test', daysAgo: -2 }),
      'CERT_NOT_YET_VALID',
    ],
  ];
  it.each(rows)('but shows %s is refused', async (_, host, context, cause) => {
    await using peer = await createPeer(() => context);
    expect(await dialled(dialler(), target(`${host}:${peer.port}`))).toBe(`upstream_untrusted: ${cause}`);
    expect([peer.accepted, peer.application()]).toEqual([1, '']);
  });
});

describe('a host that is refused for its certificate', () => {
  it('gets a hint that tells its mistake from the others', async () => {
    const contexts = [
      contextOf({ host: 'api.test', daysAgo: -2 }),
      contextOf({ host: 'api.test', daysAgo: 30 }),
      contextOf({ host: 'other.test' }),
      contextOf({ host: 'api.test', by: foreignCa }),
    ];
    const hints: (string | undefined)[] = [];
    for (const context of contexts) {
      await using peer = await createPeer(() => context);
      const result = await dialler().dial(target(`api.test:${peer.port}`), new AbortController().signal);
      hints.push(isRefusal(result) ? result.hint : 'ready');
    }
    const fragments = ['not valid yet', 'has expired', 'for other names', 'SALLYPORT_UPSTREAM_CA'];
    expect(hints).toEqual(fragments.map((fragment) => expect.stringContaining(fragment)));
  });
});

describe('a host that proves its name', () => {
  it.each(['api.test', '127.0.0.1', 'localhost'])('%s is ready', async (host) => {
    await using peer = await createPeer(() => contextOf({ host }));
    expect(await dialled(dialler(), target(`${host}:${peer.port}`))).toBe('ready');
  });

  it('is reached by the second address where the first does not response', async () => {
    await using peer = await createPeer(() => contextOf({ host: 'localhost' }));
    const forgotten: string[] = [];
    const names = {
      resolve: async () => [
        { address: '::1', family: 6 as const },
        { address: '127.0.0.1', family: 4 as const },
      ],
      forget: (host: string, address: string) => void forgotten.push(`${host} ${address}`),
    };
    const by = createDialler({
      resolver: names,
      egress: { ...closedEgress, allowLoopback: true },
      trust,
      sessions: new BoundedCache({ max: 1 }),
      connectMs: 5_000,
      quota: createConnectionQuota(100),
    });
    expect(await dialled(by, target(`localhost:${peer.port}`))).toBe('ready');
    expect(forgotten).toEqual(['localhost ::1']);
  });
});

describe('a TLS session', () => {
  it('is resumed with the host that gave it', async () => {
    const sessions = new BoundedCache<Buffer>({ max: 10 });
    const context = contextOf({ host: 'api.test' });
    await using peer = await createPeer(() => context);
    const by = dialler({ sessions });
    const to = target(`api.test:${peer.port}`);
    expect(await dialled(by, to)).toBe('ready');
    expect(sessions.size).toBe(1);
    const again = await by.dial(to, new AbortController().signal);
    expect(again).toBeInstanceOf(TLSSocket);
    expect((again as TLSSocket).isSessionReused()).toBe(true);
    (again as TLSSocket).destroy();
  });

  it('of one host is not shown to another, whose certificate then counts', async () => {
    const sessions = new BoundedCache<Buffer>({ max: 10 });
    const context = contextOf({ host: 'api.test' });
    await using peer = await createPeer(() => context);
    const by = dialler({ sessions });
    expect(await dialled(by, target(`api.test:${peer.port}`))).toBe('ready');
    // The same server, so its tickets would be resumed; only the name differs.
    expect(await dialled(by, target(`other.test:${peer.port}`))).toMatch(/^upstream_untrusted/);
  });

  it('that one trust set accepted is not resumed under another', async () => {
    const sessions = new BoundedCache<Buffer>({ max: 10 });
    const context = contextOf({ host: 'api.test', by: foreignCa });
    await using peer = await createPeer(() => context);
    const to = target(`api.test:${peer.port}`);
    const wide = createTrustSet({ rootsPem: [publicCa.certificatePem, foreignCa.certificatePem] });
    expect(await dialled(dialler({ sessions, trust: wide }), to)).toBe('ready');
    expect(sessions.size).toBe(1);
    expect(await dialled(dialler({ sessions }), to)).toMatch(/^upstream_untrusted/);
  });

  it('that comes after the cache was cleared is not kept: it is of the rules before', async () => {
    const sessions = new BoundedCache<Buffer>({ max: 10 });
    const gate = Promise.withResolvers<void>();
    const context = contextOf({ host: 'api.test' });
    await using peer = await createPeer(() => context);
    // Holds back what follows the server's handshake, its tickets.
    await using relay = await listenRaw((client) => {
      const upstream = connect(peer.port, '127.0.0.1');
      let hasResponded = false;
      let isOpen = false;
      upstream
        .on('error', () => client.destroy())
        .on('data', (chunk) => {
          hasResponded = true;
          client.write(chunk);
        });
      client
        .on('close', () => upstream.destroy())
        .on('data', (chunk) => {
          if (hasResponded && !isOpen) upstream.pause();
          upstream.write(chunk);
        });
      void gate.promise.then(() => {
        isOpen = true;
        upstream.resume();
      });
    });
    const socket = await dialler({ sessions }).dial(
      target(`api.test:${relay.port}`),
      new AbortController().signal,
    );
    expect(socket).toBeInstanceOf(TLSSocket);
    expect(sessions.size).toBe(0);
    const came = once((socket as TLSSocket).resume(), 'session');
    sessions.clear();
    gate.resolve();
    await came;
    expect(sessions.size).toBe(0);
    (socket as TLSSocket).destroy();
  });

  it('of a host that was refused is not kept', async () => {
    const sessions = new BoundedCache<Buffer>({ max: 10 });
    await using peer = await createPeer(() => contextOf({ host: 'other.test' }));
    await dialled(dialler({ sessions }), target(`api.test:${peer.port}`));
    expect(sessions.size).toBe(0);
  });
});

describe('the places of the process for connections to hosts', () => {
  it('are kept to, and given back by what is closed and by what never was ready', async () => {
    await using good = await createPeer(() => contextOf({ host: 'api.test' }));
    await using bad = await createPeer(() => contextOf({ host: 'other.test' }));
    const by = dialler({ quota: createConnectionQuota(1) });
    const never = new AbortController().signal;
    const first = await by.dial(target(`api.test:${good.port}`), never);
    expect(await dialled(by, target(`api.test:${good.port}`))).toBe('too_many_connections: hosts');
    if (isRefusal(first)) throw new Error(first.refused);
    first.destroy();
    await once(first, 'close');
    expect(await dialled(by, target(`api.test:${bad.port}`))).toMatch('upstream_untrusted');
    await expect.poll(() => dialled(by, target(`api.test:${good.port}`))).toBe('ready');
    expect(good.accepted).toBe(2);
  });
});

describe('a host that does not speak', () => {
  it('within the deadline is a timeout', async () => {
    await using peer = await listenRaw(() => {});
    expect(await dialled(dialler({ connectMs: 20 }), target(`api.test:${peer.port}`))).toBe(
      'upstream_timeout: connect',
    );
  });

  it.each([
    ['but closes', (raw: Socket) => void raw.end()],
    ['but resets', (raw: Socket) => void raw.resetAndDestroy()],
    ['TLS but HTTP', (raw: Socket) => void raw.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['TLS but garbage', (raw: Socket) => void raw.end(Buffer.alloc(64, 0xff))],
    ['but sends an alert', (raw: Socket) => void raw.end(Buffer.from([21, 3, 3, 0, 2, 2, 40]))],
  ])('%s is unreachable', async (_, serve) => {
    await using peer = await listenRaw(serve);
    expect(await dialled(dialler(), target(`api.test:${peer.port}`))).toMatch(/^upstream_unreachable: /);
  });

  it('because nobody listens is unreachable', async () => {
    const peer = await listenRaw(() => {});
    await peer[Symbol.asyncDispose]();
    for (const scheme of ['https', 'http', 'tunnel'] as const) {
      expect(await dialled(dialler(), target(`api.test:${peer.port}`, scheme))).toBe(
        'upstream_unreachable: ECONNREFUSED',
      );
    }
  });
});

describe('a client that gives up', () => {
  it('while the host is silent ends the attempt, and the host sees it', async () => {
    const gone = Promise.withResolvers<void>();
    const met = Promise.withResolvers<void>();
    await using peer = await listenRaw((raw) => {
      raw.on('data', () => met.resolve()).on('close', () => gone.resolve());
    });
    const abort = new AbortController();
    const attempt = dialler().dial(target(`api.test:${peer.port}`), abort.signal);
    await met.promise;
    abort.abort();
    expect(await attempt).toMatchObject({ refused: 'upstream_unreachable', cause: 'aborted' });
    await gone.promise;
  });

  it('before anything is dialled leaves no connection', async () => {
    await using peer = await listenRaw(() => {});
    const result = await dialler().dial(target(`api.test:${peer.port}`), AbortSignal.abort());
    expect(result).toMatchObject({ refused: 'upstream_unreachable' });
    expect(peer.accepted).toBe(0);
  });
});

describe('a host that breaks its TLS right behind the handshake', () => {
  it('is a 502, and the proxy serves on', async () => {
    const context = origins.contextFor('api.test');
    await using peer = await createPeer(() => context);
    // Passes bytes on and hangs garbage on the server's first flight, so that both arrive in one segment.
    await using relay = await listenRaw((client) => {
      const upstream = connect(peer.port, '127.0.0.1');
      upstream.on('error', () => client.destroy());
      client.on('data', (chunk) => upstream.write(chunk)).on('close', () => upstream.destroy());
      upstream.on('data', (chunk) =>
        client.write(Buffer.concat([Buffer.from(chunk), Buffer.alloc(64, 0xff)])),
      );
    });
    await using proxy = await createTestSidecar({
      proxyConfig: { rules: [apiRule] },
      secrets: { TOKEN: secret },
      origins,
    });
    const authority = `api.test:${relay.port}`;
    await using client = await WireClient.connectThrough(proxy.port, authority, {
      ca: proxy.caPem,
      name: 'api.test',
    });
    await client.send(head('GET / HTTP/1.1', `Host: ${authority}`));
    const response = await client.readResponse();
    expect(response.head.status).toBe(502);
    expect(errorOf(response.head)).toMatch(/^upstream_(unreachable|closed|malformed)$/);
    expect(peer.application()).not.toContain(secret);
  });
});
