// The routes by which a sandbox may try to reach a forbidden destination, and one sidecar that allows everything that can
// be allowed. Each route returns the response, the recorded cause and the addresses that the proxy dialled.
import { networkInterfaces } from 'node:os';
import { createOrigin, response } from '../support/recording-origin.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecar, type TestSidecarOptions, createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient, type WireHead } from '../support/wire-client.ts';
import { head } from './credential-scene.ts';
import type { DialLedger } from './dial-ledger.ts';

export type Scene = AsyncDisposable & { readonly proxy: TestSidecar; readonly ledger: DialLedger };

/** `response`: status and code; `cause`: from the record; `dialled`: by the proxy, not by its client. */
export type Attempt = {
  readonly response: string;
  readonly cause: unknown;
  readonly dialled: readonly string[];
};

/** Tries to reach `authority`, a host and a port in any spelling. */
export type EntryPoint = (scene: Scene, authority: string) => Promise<Attempt>;

const EVERY_PORT: readonly number[] = Array.from({ length: 65_535 }, (_, i) => i + 1);
const origins = createTestAuthority('Stand-in for the public CAs');

/** Every port of every host, so that only the address decides. */
export const anyPort: Readonly<Record<string, unknown>> = { ports: EVERY_PORT };
/** No operator setting allows more. */
export const loosest: Readonly<Record<string, unknown>> = {
  auth: 'none',
  egress: { ...anyPort, allow_private: ['all', '0.0.0.0/0', '::/0'] },
  timeouts: { drain_ms: 200 },
};

export async function createReachScene(ledger: DialLedger, options: TestSidecarOptions): Promise<Scene> {
  // Without this a callback result would not be injected over http://, and the callback would not be called.
  const config = { ...loosest, inject_cleartext: ['api.test:80'], ...options.config };
  const proxy = await createTestSidecar({ origins, proxyConfig: {}, ...options, config });
  return { proxy, ledger, [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose]() };
}

export const entryPoints: Readonly<Record<string, EntryPoint>> = {
  'a CONNECT': (scene, authority) =>
    attempt(scene, async (client) => {
      await client.send(head(`CONNECT ${authority}`, authority));
      return client.readHead();
    }),
  'an http:// request': (scene, authority) =>
    attempt(scene, async (client) => {
      await client.send(head(`GET http://${authority}/`, authority));
      return client.readHead();
    }),
  'a request inside a tunnel that a rule covers': (scene, authority) =>
    attempt(scene, async (client) => {
      // A path that the rule does not match, so that plaintext is forwarded without the credential.
      scene.proxy.apply({ rules: [ruleFor(authority, { match_paths: ['/never'] })] });
      const opened = await client.openTunnel(authority);
      if (opened.status !== 200) return opened;
      await client.send(head('GET /', authority));
      return client.readHead();
    }),
  'a callback': (scene, authority) =>
    attempt(scene, async (client) => {
      const url = `http://${authority}/headers`;
      const applied = scene.proxy.apply({
        callbacks: [{ match_hosts: ['api.test'], url, ttl_seconds: 60 }],
      });
      if (!applied.ok) return 'not a document';
      await client.send(head('GET http://api.test/', 'api.test'));
      return client.readHead();
    }),
};

/** Every document in which a tenant can name `authority`; a list that cannot contain its host is omitted. */
export function documentsFor(authority: string): readonly unknown[] {
  const host = hostOf(authority);
  return [
    {},
    { no_proxy: [host] },
    { no_proxy: ['*.test', 'localhost', '.localhost', '0.0.0.0/0', '::/0'] },
    { access_control: { allow_list: [authority] } },
    { access_control: { allow_list: ['*.test', 'localhost', '*.localhost', '0.0.0.0/0', '::/0'] } },
  ];
}

export function ruleFor(authority: string, more: object = {}): unknown {
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'one' }];
  return { match_hosts: [hostOf(authority)], headers, ...more };
}

export function hostOf(authority: string): string {
  return authority.slice(0, authority.lastIndexOf(':'));
}

/** Addresses of this machine beyond loopback, as an authority spells them. */
export function ownAddresses(family: 'IPv4' | 'IPv6'): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses = []) => addresses)
    .filter((one) => !one.internal && one.family === family)
    .map(({ address }) => (family === 'IPv6' ? `[${address.split('%')[0]}]` : address));
}

/** An origin that redirects every request to `location`. */
export function redirectOrigin(location: string): ReturnType<typeof createOrigin> {
  return createOrigin({ respond: ({ send }) => send(response(307, [['Location', location]])) });
}

async function attempt(
  { proxy, ledger }: Scene,
  ask: (client: WireClient) => Promise<WireHead | string>,
): Promise<Attempt> {
  await using client = await WireClient.connect(proxy.port);
  const before = { attempts: ledger.attempts.length, records: proxy.records().length };
  const response = await ask(client);
  const [record] = proxy.records().slice(before.records);
  return {
    response: typeof response === 'string' ? response : responseOf(response),
    cause: record?.['cause'],
    dialled: ledger.attempts.slice(before.attempts),
  };
}

function responseOf({ status, headers }: WireHead): string {
  const code = headers.find(([name]) => name === 'X-Sallyport-Error')?.[1];
  return code === undefined ? String(status) : `${status} ${code}`;
}
