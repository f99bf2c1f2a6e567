import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setInterval } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createCallbackClient, type VetHost } from '../../src/callback/client.ts';
import { type Exchange, response } from '../support/recording-origin.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { createTrustSet } from '../../src/tls/trust.ts';
import { authorityOf, compiledCallback, vetLoopback } from './compiled-callback.ts';
import { BODY, CANARY, callOnce, failed, good, originOf, type Script, withSecret } from './single-call.ts';

describe('dials what the address check returned and nothing else', () => {
  const dead = 'http://cb.test:9/';

  const refusals: readonly [string, string, VetHost, string][] = [
    ['a refused name', dead, async () => ({ refused: 'metadata' }), 'refused: metadata'],
    [
      'a refused address',
      'http://169.254.169.254/',
      async () => ({ refused: 'metadata' }),
      'refused: metadata',
    ],
    [
      'an address for which another was returned',
      'http://127.0.0.2:9/',
      vetLoopback,
      'refused: no address of it may be dialled',
    ],
    ['a check that fails', dead, () => Promise.reject(new Error(CANARY)), failed('Error')],
    [
      'a name without addresses',
      dead,
      async () => ({ addresses: [] }),
      'refused: no address of it may be dialled',
    ],
  ];

  it.each(refusals)('%s is a failure', async (_, url, vet, reason) => {
    expect(await callOnce(compiledCallback(url), { vet })).toEqual({ ok: false, reason });
  });

  it('checks the canonical host and port, once for each connection', async () => {
    await using origin = await originOf(response(200, [['Connection', 'close']], BODY));
    const vet = vi.fn(vetLoopback);
    const client = createCallbackClient({ vet, trust: undefined, timeoutMs: 10_000 });
    const callback = compiledCallback(`http://CB.Test.:${origin.port}/`);
    for (const _ of [1, 2]) await client.call(callback, authorityOf('api.test:443'));
    await client.close();
    expect(vet.mock.calls).toEqual([
      ['cb.test', origin.port],
      ['cb.test', origin.port],
    ]);
  });

  it('tries the next address when one does not respond', async () => {
    await using origin = await originOf(good);
    const addresses = [
      { address: '127.0.0.2', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ] as const;
    const reply = await callOnce(compiledCallback(`http://cb.test:${origin.port}/`), {
      vet: async () => ({ addresses }),
    });
    expect(reply.ok).toBe(true);
  });

  it('reports ECONNREFUSED when nothing listens', async () => {
    const origin = await originOf(good);
    await origin.close();
    const reply = await callOnce(compiledCallback(`http://cb.test:${origin.port}/`));
    expect(reply).toEqual({ ok: false, reason: failed('ECONNREFUSED') });
  });
});

describe('whatever the environment says', () => {
  afterEach(() => vi.unstubAllEnvs());

  it.each(['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY'])('%s is ignored', async (variable) => {
    await using proxy = await originOf(good);
    await using origin = await originOf(good);
    vi.stubEnv(variable, `http://127.0.0.1:${proxy.port}`);
    vi.stubEnv('NODE_USE_ENV_PROXY', '1');
    const reply = await callOnce(compiledCallback(`http://cb.test:${origin.port}/`));
    expect([reply.ok, proxy.connections]).toEqual([true, 0]);
  });

  it('NODE_TLS_REJECT_UNAUTHORIZED=0 changes nothing', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    await using origin = await originOf(good, { authority: createTestAuthority(), names: ['cb.test'] });
    const reply = await callOnce(compiledCallback(`https://cb.test:${origin.port}/`));
    expect(reply.ok).toBe(false);
  });
});

describe('over TLS', () => {
  const authority = createTestAuthority();
  const trusted = [authority.certificatePem];
  const outsider = [createTestAuthority('Another').certificatePem];

  const rows: readonly [string, string, string, readonly string[] | undefined, string | undefined][] = [
    ['a name that the certificate holds', 'cb.test', 'cb.test', trusted, undefined],
    ['a name in another spelling', 'CB.Test.', 'cb.test', trusted, undefined],
    ['an address that the certificate holds', '127.0.0.1', '127.0.0.1', trusted, undefined],
    ['another name', 'cb.test', 'other.test', trusted, failed('ERR_TLS_CERT_ALTNAME_INVALID')],
    [
      'an address, and a certificate for localhost',
      '127.0.0.1',
      'localhost',
      trusted,
      failed('ERR_TLS_CERT_ALTNAME_INVALID'),
    ],
    ['an authority that is not trusted', 'cb.test', 'cb.test', outsider, failed('SELF_SIGNED_CERT_IN_CHAIN')],
    ['an unknown authority', 'cb.test', 'cb.test', undefined, failed('SELF_SIGNED_CERT_IN_CHAIN')],
  ];

  it.each(rows)('%s', async (_, host, certified, caPem, reason) => {
    await using origin = await originOf(good, { authority, names: [certified] });
    const callback = compiledCallback(`https://${host}:${origin.port}/`, withSecret);
    const reply = await callOnce(callback, caPem && { trust: createTrustSet({ rootsPem: caPem }) });
    if (reason === undefined) expect(reply.ok).toBe(true);
    else expect(reply).toEqual({ ok: false, reason });
    // Not a byte of the request, the shared secret among it, before the other end has proved its name.
    expect(origin.requests).toHaveLength(reason === undefined ? 1 : 0);
    if (reason === undefined)
      expect(origin.requests[0]?.serverName).toBe(certified === 'cb.test' ? certified : undefined);
  });

  it('a server that speaks no TLS is a failure', async () => {
    await using server = createServer((socket) => socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo; // A TCP server's; the other form is for pipes.
    const reply = await callOnce(compiledCallback(`https://cb.test:${port}/`), {
      trust: createTrustSet({ rootsPem: trusted }),
    });
    expect(reply).toEqual({ ok: false, reason: failed('ERR_SSL_WRONG_VERSION_NUMBER') });
  });
});

describe('one deadline for the whole call', () => {
  const never = new Promise<never>(() => undefined);
  const drip = async (exchange: Exchange): Promise<void> => {
    await exchange.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    for await (const _ of setInterval(5)) await exchange.send('1\r\n \r\n');
  };

  const rows: readonly [string, Script, VetHost][] = [
    ['an address check without end', good, () => never],
    ['silence', () => never, vetLoopback],
    ['a head without end', (exchange) => exchange.send('HTTP/1.1 200 OK\r\n').then(() => never), vetLoopback],
    ['a body without end', (exchange) => exchange.send(good.subarray(0, -3)).then(() => never), vetLoopback],
    ['a drip that is never idle', drip, vetLoopback],
  ];

  it.each(rows)('%s', async (_, script, vet) => {
    await using origin = await originOf(script);
    const reply = await callOnce(compiledCallback(`http://cb.test:${origin.port}/`), { vet, timeoutMs: 60 });
    expect(reply).toEqual({ ok: false, reason: 'no complete response within 60 ms' });
  });

  it('frees the connection of a call that it ended', async () => {
    const closed = Promise.withResolvers<unknown>();
    await using origin = await originOf(async ({ reader }) => closed.resolve(await reader.finished));
    const client = createCallbackClient({ vet: vetLoopback, trust: undefined, timeoutMs: 60 });
    await client.call(compiledCallback(`http://cb.test:${origin.port}/`), authorityOf('api.test:443'));
    await closed.promise;
    await client.close();
  });
});

describe('closing', () => {
  const shutting = { ok: false, reason: 'the proxy is shutting down' };

  it('ends the calls under way, whatever they wait for, and refuses the next', async () => {
    const never = new Promise<never>(() => undefined);
    await using origin = await originOf(() => never);
    const vetting = Promise.withResolvers<void>();
    const vet: VetHost = (host, port) => {
      if (host !== 'slow.test') return vetLoopback(host, port);
      vetting.resolve();
      return never;
    };
    const client = createCallbackClient({ vet, trust: undefined, timeoutMs: 10_000 });
    const urls = [`http://cb.test:${origin.port}/`, `http://slow.test:${origin.port}/`];
    const calls = urls.map((url) => client.call(compiledCallback(url), authorityOf('api.test:443')));
    await Promise.all([origin.request(0), vetting.promise]);
    await client.close();
    expect(await Promise.all(calls)).toEqual([shutting, shutting]);
    expect(await client.call(compiledCallback(urls[0] ?? ''), authorityOf('api.test:443'))).toEqual(shutting);
  });

  it('is harmless before the first call', async () => {
    await createCallbackClient({ vet: vetLoopback, trust: undefined, timeoutMs: 10_000 }).close();
  });
});
