// Two proxies and a small internet for the stage `connect`: public addresses that end at origins on loopback, and a ledger
// of every dialled address. The dial of an address without an origin is recorded and refused before it reaches the kernel,
// so that no row can send a packet to the network.
import { type DialLedger, openDialLedger } from '../../invariants/dial-ledger.ts';
import { type RecordingOrigin, createOrigin, response } from '../../support/recording-origin.ts';
import { createTestAuthority } from '../../support/test-authority.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';

export const SECRET = 'sesame>>open??now~~42~';
const EVERY_PORT: readonly number[] = Array.from({ length: 65_535 }, (_, i) => i + 1);

/** The address of each name; any other name is 127.0.0.1, where nothing listens on these ports. */
const names: Readonly<Record<string, readonly string[]>> = {
  'api.test': ['8.8.1.1'],
  'narrow.test': ['8.8.1.1'],
  'back.test': ['8.8.1.1'],
  'under_score.test': ['8.8.1.1'],
  'xn--bcher-kva.test': ['8.8.1.1'],
  'a.wild.test': ['8.8.1.1'],
  'b.wild.test': ['8.8.1.1'],
  'a.b.wild.test': ['8.8.1.1'],
  'x.y.z.wild.test': ['8.8.1.1'],
  '0.wild.test': ['8.8.1.1'],
  '_a.wild.test': ['8.8.1.1'],
  '8.8.1.3.wild.test': ['8.8.1.1'],
  'wild.test': ['8.8.1.3'],
  'clear.test': ['8.8.1.1'],
  'other.test': ['8.8.1.2'],
  'a.sub.test': ['8.8.1.2'],
  'sub.test': ['8.8.1.2'],
  'evil.test': ['8.8.1.3'],
  'a.evil.test': ['8.8.1.3'],
  'notevil.test': ['8.8.1.3'],
  'behind.test': ['8.8.2.7'],
  'nowhere.test': ['8.8.4.4'],
  '127.0.0.1e0': ['8.8.4.4'],
  'awild.test': ['8.8.4.4'],
  'a-wild.test': ['8.8.4.4'],
  'a.wild.testx': ['8.8.4.4'],
  'a.wild.test.nowhere.test': ['8.8.4.4'],
  'wild.test.nowhere.test': ['8.8.4.4'],
  'a.wild': ['8.8.4.4'],
  'xn--pi-7kc.test': ['8.8.4.4'],
  'xn--api.test': ['8.8.4.4'],
  'intra.test': ['10.0.0.5'],
  'a.intra.test': ['10.0.0.5'],
  'meta.test': ['169.254.169.254'],
  'mixed.test': ['8.8.1.3', '169.254.169.254'],
  'self.test': ['127.0.0.1'],
  'self6.test': ['::1'],
  'mapped.test': ['::ffff:127.0.0.1'],
  'translated.test': ['64:ff9b::7f00:1'],
  'late.test': ['8.8.1.3', '127.0.0.1'],
};

const provenNames: readonly string[] = [
  'api.test',
  'narrow.test',
  'under_score.test',
  'xn--bcher-kva.test',
  'a.wild.test',
  'b.wild.test',
  'a.b.wild.test',
  'x.y.z.wild.test',
  '0.wild.test',
  '_a.wild.test',
  '8.8.1.3.wild.test',
];

export type Place = 'api' | 'evil' | 'clear' | 'four' | 'six';
export type ConnectScene = AsyncDisposable & {
  readonly ledger: DialLedger;
  readonly origins: Readonly<Record<Place, RecordingOrigin>>;
  readonly publicPem: string;
  readonly proxies: Readonly<Record<'strict' | 'loose', ProxyPlace>>;
};
export type ProxyPlace = { readonly proxy: TestSidecar; readonly ports: Readonly<Record<string, string>> };

export async function createConnectScene(): Promise<ConnectScene> {
  const authority = createTestAuthority('Stand-in for the public CAs');
  const respond = ({ send }: { send(bytes: Buffer): Promise<void> }): Promise<void> =>
    send(response(200, [], 'fine'));
  const tls = (...list: string[]): object => ({ tls: { authority, names: list } });
  const origins = {
    api: await createOrigin({ respond, ...tls(...provenNames) }),
    four: await createOrigin({ respond, ...tls('8.8.1.9') }),
    six: await createOrigin({ respond, ...tls('2606:4700::1111') }),
    evil: await createOrigin({ respond, ...tls('evil.test', 'other.test', 'wild.test') }),
    clear: await createOrigin({ respond }),
  };
  const ledger = await openDialLedger((address, port) => {
    const place = placeAt(address, port);
    return place && origins[place].port;
  });
  const open = (config: object): Promise<ProxyPlace> => openProxy(authority, config);
  const proxies = {
    strict: await open({ inject_cleartext: ['clear.test:80'] }),
    loose: await open({ egress: { ports: EVERY_PORT, allow_private: ['all', '0.0.0.0/0', '::/0'] } }),
  };
  return {
    ledger,
    origins,
    proxies,
    publicPem: authority.certificatePem,
    async [Symbol.asyncDispose]() {
      for (const { proxy } of Object.values(proxies)) await proxy[Symbol.asyncDispose]();
      for (const origin of Object.values(origins)) await origin.close();
      ledger[Symbol.dispose]();
    },
  };
}

/** The origins with TLS at each address, on 443 and 8443. */
const places: Readonly<Record<string, Place>> = {
  '8.8.1.1': 'api',
  '8.8.1.2': 'evil',
  '8.8.1.3': 'evil',
  '8.8.1.9': 'four',
  '2606:4700::1111': 'six',
};

function placeAt(address: string, port: number): Place | undefined {
  if (places[address] === undefined || ![80, 443, 8443].includes(port)) return undefined;
  if (port === 80) return 'clear';
  return places[address];
}

async function openProxy(
  authority: ReturnType<typeof createTestAuthority>,
  config: object,
): Promise<ProxyPlace> {
  const options = { origins: authority, names, secrets: { TOKEN: SECRET }, admin: true };
  const proxy = await createTestSidecar({ ...options, proxyConfig: {}, config: { ...config } });
  const other = { id: 'other', listen: '127.0.0.1:0', token: 'token-of-the-other-sandbox' };
  const { body } = await proxy.admin('POST', '/v1/sandboxes', other);
  const ports = {
    PROXY: String(proxy.port),
    ADMIN: new URL(proxy.adminUrl).port,
    OTHER: new URL(String(body['proxy'])).port,
  };
  return { proxy, ports };
}
