// The host's side of HTTP/2: which session carries a stream, how many there are, and what is sent again when a host
// says that it never looked at it.
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import type { H2Response, H2WireClient } from '../../support/h2-wire-client.ts';
import { WireClient } from '../../support/wire-client.ts';
import { apiRule, secret } from '../data-path.ts';
import { createH2Path, type H2Path } from '../h2/h2-path.ts';

const ok = ({ response }: H2Exchange): Promise<boolean> => response(200, [], 'ok');
const get = (client: H2WireClient, path = '/'): Promise<H2Response> => client.request(client.fields(path));
const post = (client: H2WireClient, body: string | Buffer): Promise<H2Response> =>
  client.request(client.fields('/', [], { ':method': 'POST' }), { body });
const errorOf = ({ headers }: H2Response): string | undefined =>
  headers.find(([name]) => name === 'x-sallyport-error')?.[1];

/** Responds to the first stream with `first`, to later ones with `ok`. */
function once(first: (exchange: H2Exchange) => Promise<unknown>): (exchange: H2Exchange) => Promise<void> {
  let isFirst = true;
  return async (exchange) => {
    const script = isFirst ? first : ok;
    isFirst = false;
    await script(exchange);
  };
}

describe('sessions', () => {
  it('are as many as the streams under way need, and none has more than its host allows', async () => {
    const all = Promise.withResolvers<void>();
    let waiting = 0;
    const respond = async (exchange: H2Exchange): Promise<void> => {
      waiting += 1;
      if (waiting === 10) all.resolve();
      await all.promise;
      await ok(exchange);
    };
    await using path = await createH2Path({ origin: { settings: { max_concurrent_streams: 3 }, respond } });
    const client = await path.client();
    const responses = await Promise.all(Array.from({ length: 10 }, (_, i) => get(client, `/${i}`)));
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(path.origin.connections).toHaveLength(4);
    expect(Math.max(...path.origin.connections.map(({ mostStreams }) => mostStreams))).toBe(3);
  });

  it('serve one client after the other, and no two at once', async () => {
    const gate = Promise.withResolvers<void>();
    const respond = async (exchange: H2Exchange): Promise<void> => {
      if (exchange.request.path === '/slow') await gate.promise;
      await ok(exchange);
    };
    await using path = await createH2Path({ origin: { respond } });
    const [first, second] = [await path.client(), await path.client()];
    await get(first);
    await get(second);
    expect(path.origin.connections).toHaveLength(1);
    const slow = get(first, '/slow');
    await path.origin.stream(2);
    await get(second);
    expect(path.origin.streams.map(({ connection }) => connection)).toEqual([0, 0, 0, 1]);
    gate.resolve();
    await slow;
  });

  it('that a handshake left and nobody used keep to the limit of idle connections', async () => {
    const rule = { ...apiRule, match_hosts: ['api.test', 'other.test'] };
    const config = { limits: { max_idle_upstream: 1 } };
    await using path = await createH2Path({
      proxy: { proxyConfig: { rules: [rule] }, secrets: { TOKEN: secret }, config },
    });
    const { proxy, origin } = path;
    for (const name of ['api.test', 'other.test']) {
      const trust = { ca: proxy.caPem, name, alpn: ['h2'] };
      await using _ = await WireClient.connectThrough(proxy.port, `${name}:${origin.port}`, trust);
    }
    const open = (): boolean[] => origin.connections.map(({ isOpen }) => isOpen);
    while (open()[1] !== false) await turn();
    expect(open()).toEqual([true, false]);
  });

  it('of an older document carry nothing more, once what runs has ended', async () => {
    const gate = Promise.withResolvers<void>();
    const respond = async (exchange: H2Exchange): Promise<void> => {
      if (exchange.request.path === '/slow') await gate.promise;
      await ok(exchange);
    };
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    const slow = get(client, '/slow');
    await path.origin.stream(0);
    path.proxy.apply({ rules: [{ ...apiRule, name: 'newer' }] });
    await get(client);
    expect(path.origin.streams.map(({ connection }) => connection)).toEqual([0, 1]);
    gate.resolve();
    expect((await slow).status).toBe(200);
    await path.origin.connections[0]?.peer?.closed;
    expect(path.proxy.records().map(({ revision }) => revision)).toEqual([2, 1]);
  });

  it.each([
    ['a client that authenticates its connection', [['authorization', 'Negotiate abc']], []],
    ['a host that wants connections authenticated', [], [['www-authenticate', 'NTLM']]],
  ] as const)('of %s are used by nobody else', async (_, sent, responded) => {
    const rule = { ...apiRule, match_paths: ['/never'] };
    const respond = ({ response }: H2Exchange): Promise<boolean> => response(401, responded);
    await using path = await createH2Path({
      origin: { respond: async (exchange) => void (await respond(exchange)) },
      proxy: { proxyConfig: { rules: [rule] } },
    });
    const client = await path.client();
    await client.request(client.fields('/', sent));
    await client.request(client.fields('/', sent));
    const used = path.origin.streams.map(({ connection }) => connection);
    expect(new Set(used).size).toBe(2);
  });

  it('that carried a credential which binds them carry nothing that it was not given for', async () => {
    const headers = [{ name: 'Authorization', type: 'plaintext', value: 'negotiate abc' }];
    const rule = { match_hosts: ['api.test'], match_paths: ['/covered'], headers };
    await using path = await createH2Path({
      origin: { respond: async (exchange) => void (await ok(exchange)) },
      proxy: { proxyConfig: { rules: [rule] } },
    });
    const client = await path.client();
    for (const target of ['/', '/covered', '/']) await get(client, target);
    expect(path.origin.streams.map(({ connection }) => connection)).toEqual([0, 0, 1]);
  });

  it('that grant nothing are waited for as any silent host is', async () => {
    await using path = await createH2Path({
      origin: {
        settings: { max_concurrent_streams: 0 },
        respond: async (exchange) => void (await ok(exchange)),
      },
      proxy: { config: { timeouts: { response_idle_ms: 200 } } },
    });
    const client = await path.client();
    await path.origin.connection(0);
    const response = await get(client);
    expect([response.status, errorOf(response)]).toEqual([504, 'upstream_timeout']);
  });
});

describe('what a host has not looked at', () => {
  const refusals: readonly [string, (exchange: H2Exchange) => Promise<unknown>][] = [
    ['REFUSED_STREAM', ({ reset }) => reset('REFUSED_STREAM')],
    ['a GOAWAY that leaves it out', ({ goaway }) => goaway(0)],
    ['a GOAWAY of an error that leaves it out', ({ goaway }) => goaway(0, 'ENHANCE_YOUR_CALM')],
  ];

  it.each(refusals)('is sent again after %s, a POST and its body too', async (_, refuse) => {
    await using path = await createH2Path({ origin: { respond: once(refuse) } });
    const response = await post(await path.client(), 'a'.repeat(1_000));
    expect(response.text).toBe('ok');
    const [, second] = path.origin.streams;
    expect(await second?.ended()).toBe(true);
    expect(second?.body.content.toString()).toBe('a'.repeat(1_000));
    expect(second?.values('authorization')).toEqual([`Bearer ${secret}`]);
    expect(path.origin.streams).toHaveLength(2);
    expect(path.proxy.records()).toMatchObject([{ outcome: 'injected', status: 200, bytes_up: 1_000 }]);
  });

  it('is sent again three times at most', async () => {
    const respond = async ({ reset }: H2Exchange): Promise<void> => void (await reset('REFUSED_STREAM'));
    await using path = await createH2Path({ origin: { respond } });
    expect((await get(await path.client())).reset).toBe('REFUSED_STREAM');
    expect(path.origin.streams).toHaveLength(4);
  });

  it('is the client’s to send again where its body is too long to be kept', async () => {
    const respond = once(async ({ request, reset }) => {
      // Without granting more than the first window, all of which has been sent.
      await path.origin.connections[0]?.peer?.until(
        () => (request.body.length >= 65_535 ? true : undefined),
        'a full window',
      );
      await reset('REFUSED_STREAM');
    });
    await using path: H2Path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    const response = await post(client, Buffer.alloc(200_000));
    expect(response.reset).toBe('REFUSED_STREAM');
    expect(path.origin.streams).toHaveLength(1);
  });
});

describe('what a host may have looked at', () => {
  const dies = async ({ connection }: H2Exchange): Promise<void> => connection.destroy();

  it('is sent again if it may be, on a session that had been of use', async () => {
    let count = 0;
    const respond = async (exchange: H2Exchange): Promise<void> => {
      count += 1;
      await (count === 2 ? dies(exchange) : ok(exchange));
    };
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    await get(client);
    expect((await get(client)).text).toBe('ok');
    expect(path.origin.streams).toHaveLength(3);
  });

  it.each([
    ['a POST', 2, post],
    ['the first request of a session', 1, get],
  ] as const)('is not if it is %s: 502', async (_, dying, request) => {
    let count = 0;
    const respond = async (exchange: H2Exchange): Promise<void> => {
      count += 1;
      await (count === dying ? dies(exchange) : ok(exchange));
    };
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    if (dying === 2) await get(client);
    const response = await request(client, '/x');
    expect([response.status, errorOf(response)]).toEqual([502, 'upstream_closed']);
    expect(path.origin.streams).toHaveLength(dying);
  });

  it('is the host’s to refuse: the code of its reset reaches the client', async () => {
    for (const code of ['INTERNAL_ERROR', 'CANCEL', 'ENHANCE_YOUR_CALM', 'HTTP_1_1_REQUIRED'] as const) {
      const respond = async ({ reset }: H2Exchange): Promise<void> => void (await reset(code));
      await using path = await createH2Path({ origin: { respond } });
      expect((await get(await path.client())).reset).toBe(code);
      expect(path.proxy.records()).toMatchObject([
        { outcome: 'failed', reason: 'upstream_reset', cause: code },
      ]);
    }
  });

  it('ends with its session: a GOAWAY lets what it includes end', async () => {
    const respond = once(async ({ goaway, response }) => {
      await goaway();
      await response(200, [], 'late');
    });
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    expect((await get(client)).text).toBe('late');
    expect((await get(client)).text).toBe('ok');
    expect(path.origin.streams.map(({ connection }) => connection)).toEqual([0, 1]);
  });
});
