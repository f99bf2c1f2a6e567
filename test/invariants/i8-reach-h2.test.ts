// I8 over HTTP/2: neither a stream inside a tunnel nor the dial that probes a host for its protocol reaches the admin API, an
// own listener, a metadata service, a link-local address or an unlisted private address.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createH2Origin } from '../support/h2-origin.ts';
import { H2WireClient, refusalOf } from '../support/h2-wire-client.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';
import { type DialLedger, openDialLedger } from './dial-ledger.ts';
import { type Scene, createReachScene, ruleFor } from './reach-scene.ts';
import { everyNth } from '../support/run-size.ts';

let ledger: DialLedger;
beforeAll(async () => {
  ledger = await openDialLedger();
});
afterAll(() => ledger[Symbol.dispose]());

const names = {
  'four.test': ['127.0.0.1'],
  'six.test': ['::1'],
  'any.test': ['127.9.9.9'],
  'mapped.test': ['::ffff:127.0.0.1'],
  'translated.test': ['64:ff9b::7f00:1'],
  'mixed.test': ['8.8.8.8', '127.0.0.1'],
  'late.test': [...Array.from({ length: 15 }, (_, i) => `8.8.8.${i + 1}`), '127.0.0.1'],
  'metadata.test': ['169.254.169.254'],
  'mixed-metadata.test': ['8.8.8.8', '169.254.169.254'],
  'link.test': ['fe80::1'],
  'zero.test': ['0.0.0.0'],
};

type EntryPoint = (
  scene: Scene,
  authority: string,
) => Promise<{ readonly response: unknown; readonly cause: unknown }>;

/** Offers `alpn` in the tunnel of a host that a rule covers and sends `times` requests on the one connection. */
async function enter(
  scene: Scene,
  authority: string,
  alpn: readonly string[],
  times: number,
): Promise<unknown[]> {
  const name = authority.slice(0, authority.lastIndexOf(':'));
  const tls = { ca: scene.proxy.caPem, name, alpn };
  await using wire = await WireClient.connectThrough(scene.proxy.port, authority, tls);
  if (wire.socket && 'alpnProtocol' in wire.socket && wire.socket.alpnProtocol !== 'h2') {
    await wire.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    const { headers, status } = await wire.readHead();
    return [[status, headers.find(([field]) => field === 'X-Sallyport-Error')?.[1]]];
  }
  const client = await H2WireClient.over(wire, authority);
  const responses = [];
  for (let i = 0; i < times; i += 1) {
    const response = await client.request(client.fields('/'));
    responses.push([response.status, refusalOf(response)]);
  }
  return responses;
}

function entryPointOver(alpn: readonly string[]): EntryPoint {
  return async (scene, authority) => {
    scene.proxy.apply({ rules: [ruleFor(authority)] });
    const before = scene.proxy.records().length;
    const response = await enter(scene, authority, alpn, 2);
    return { response: response.at(-1), cause: (await scene.proxy.record(before))['cause'] };
  };
}

const entryPoints = [
  ['h2 only', entryPointOver(['h2'])],
  ['h2 and http/1.1', entryPointOver(['h2', 'http/1.1'])],
] as const;

/** The connections that `act` makes the proxy open, without those that its own client opens. */
async function dialledBy(scene: Scene, act: () => Promise<unknown>): Promise<readonly string[]> {
  const before = ledger.attempts.length;
  await act();
  return ledger.attempts.slice(before).filter((one) => one !== `127.0.0.1:${scene.proxy.port}`);
}

function openScene(listen = '127.0.0.1:0'): Promise<Scene> {
  return createReachScene(ledger, { admin: true, names, config: { admin: { listen, exposed: true } } });
}

async function expectRefused(
  scene: Scene,
  hosts: readonly string[],
  port: string | number,
  cause: string,
): Promise<void> {
  for (const [offered, ask] of entryPoints)
    for (const host of hosts) {
      const met: unknown[] = [];
      const dialled = await dialledBy(scene, async () => met.push(await ask(scene, `${host}:${port}`)));
      expect([offered, host, met, dialled]).toEqual([
        offered,
        host,
        [{ response: [403, 'address_denied'], cause }],
        [],
      ]);
    }
}

describe('I8 reach: by the dial that probes a host for HTTP/2', () => {
  it.each(['127.0.0.1', '0.0.0.0', '[::1]', '[::]'])(
    'I8 reach: the admin API on %s is not reached',
    async (host) => {
      await using scene = await openScene(`${host}:0`);
      const v4 = ['four.test', 'mapped.test', 'translated.test', 'mixed.test', 'late.test', '127.0.0.1'];
      // A listener on every interface is on every loopback address.
      const wide = host === '127.0.0.1' ? v4 : [...v4, 'any.test'];
      const reaching = ['localhost', ...(host === '[::1]' ? ['six.test'] : wide)];
      const { port } = new URL(scene.proxy.adminUrl);
      await expectRefused(scene, reaching, port, 'own listener');
    },
  );

  it('I8 reach: the listener that an HTTP/2 client used is not reached', async () => {
    await using scene = await openScene();
    const hosts = ['localhost', 'four.test', 'mapped.test', 'mixed.test', 'late.test', '127.0.0.1'];
    const { port } = scene.proxy;
    for (const [, ask] of entryPoints)
      for (const host of hosts) {
        expect(await ask(scene, `${host}:${port}`)).toEqual({
          response: [403, 'address_denied'],
          cause: 'own listener',
        });
      }
    // Only the clients of this test connected to it.
    expect(scene.proxy.records().map(({ reason }) => reason)).not.toContain('client_gone');
  });

  it("I8 reach: another sandbox's listener is not reached", async () => {
    await using scene = await openScene();
    const document = { id: 'other', listen: '127.0.0.1:0', token: 'token-of-the-other-sandbox' };
    const { body } = await scene.proxy.admin('POST', '/v1/sandboxes', document);
    const { port } = new URL(String(body['proxy']));
    await expectRefused(scene, ['localhost', 'four.test', 'mapped.test', 'mixed.test'], port, 'own listener');
  });

  it.each([
    ['metadata.test', 'metadata'],
    ['mixed-metadata.test', 'metadata'],
    ['link.test', 'link_local'],
    ['zero.test', 'unspecified'],
  ])('I8 reach: %s is not reached', async (host, cause) => {
    await using scene = await openScene();
    await expectRefused(scene, [host], 443, cause);
  });

  it('I8 reach: an address on a deny_list is not probed for its protocol', async () => {
    await using scene = await openScene();
    await using origin = await createH2Origin({
      tls: { authority: createTestAuthority(), names: ['four.test'] },
    });
    const authority = `four.test:${origin.port}`;
    const document = { rules: [ruleFor(authority)], access_control: { deny_list: ['127.0.0.0/8'] } };
    expect(scene.proxy.apply(document)).toMatchObject({ ok: true });
    for (const alpn of [['h2'], ['h2', 'http/1.1']]) {
      const responses: unknown[] = [];
      const dialled = await dialledBy(scene, async () =>
        responses.push(await enter(scene, authority, alpn, 1)),
      );
      expect([responses, dialled]).toEqual([[[[403, expect.stringMatching(/denied/)]]], []]);
    }
    expect(origin.connections).toEqual([]);
  });
});

describe('I8 reach: by a stream inside a tunnel', () => {
  type Row = readonly [
    why: string,
    pseudo: Readonly<Record<string, string | undefined>>,
    extra: readonly (readonly [string, string])[],
  ];
  const bare = { ':scheme': undefined, ':path': undefined };
  const aims = (at: string): readonly Row[] => [
    ['a CONNECT', { ':method': 'CONNECT', ...bare, ':authority': at }, []],
    ['an extended CONNECT', { ':method': 'CONNECT', ':protocol': 'websocket', ':authority': at }, []],
    ['a CONNECT for UDP', { ':method': 'CONNECT', ':protocol': 'connect-udp', ':authority': at }, []],
    ['an :authority', { ':authority': at }, []],
    ['a host field', { ':authority': undefined }, [['host', at]]],
    ['a host field beside the right :authority', {}, [['host', at]]],
    ['a plaintext :authority', { ':authority': at, ':scheme': 'http' }, []],
    ['an absolute :path', { ':path': `http://${at}/` }, []],
  ];
  const places = ['169.254.169.254:80', 'metadata.test:80', '[fd00:ec2::254]:80', 'ADMIN', 'PROXY'];
  const cases = places.flatMap((at) => aims(at).map(([why], row) => [why, at, row] as const));

  everyNth(2, cases, (some, options) =>
    it.each(some)('I8 reach: %s for %s is refused, and nothing is dialled', options, async (_, at, row) => {
      const authority = createTestAuthority('Stand-in for the public CAs');
      await using origin = await createH2Origin({ tls: { authority, names: ['four.test'] } });
      await using scene = await createReachScene(ledger, { admin: true, names, origins: authority });
      scene.proxy.apply({ rules: [ruleFor('four.test:1')] });
      const place = { ADMIN: new URL(scene.proxy.adminUrl).host, PROXY: `127.0.0.1:${scene.proxy.port}` };
      const [, pseudo, extra] = aims(place[at as keyof typeof place] ?? at)[row] as Row;
      const good = `four.test:${origin.port}`;
      const tls = { ca: scene.proxy.caPem, name: 'four.test', alpn: ['h2'] };
      await using wire = await WireClient.connectThrough(scene.proxy.port, good, tls);
      const client = await H2WireClient.over(wire, good);
      expect((await client.request(client.fields('/right'))).status).toBe(200);
      const dialled = await dialledBy(scene, async () => {
        const response = await client.request(client.fields('/', extra, pseudo));
        if (response.status === 0) expect(response.reset).toBe('PROTOCOL_ERROR');
        else expect([400, 405, 421]).toContain(response.status);
        if (pseudo[':method'] === 'CONNECT')
          expect(response.status).toBe(pseudo[':protocol'] === undefined ? 405 : 0);
        // The connection stays usable.
        expect((await client.request(client.fields('/right'))).status).toBe(200);
      });
      expect(dialled).toEqual([]);
      expect(origin.streams.map(({ path }) => path)).toEqual(['/right', '/right']);
      // RFC 8441: extended CONNECT is not supported, so that it is not offered.
      expect(client.peer.remote.enable_connect_protocol ?? 0).toBe(0);
    }),
  );
});
