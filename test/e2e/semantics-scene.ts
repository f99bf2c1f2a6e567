// One request through a sidecar with a given proxy_config, and its result at the origins: the driver of the semantic tables.
// The agent marks its own fields; each rule and callback sets `Authorization` to its own name.
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { headerValues } from '../support/message-reader.ts';
import { type OriginRequest, type RecordingOrigin, createOrigin } from '../support/recording-origin.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecarOptions, createTestSidecar, proxyAuthority } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

/** The `Authorization` at the origin, and the way there; or the error code of a rejection. */
export type Fate =
  | { readonly saw: string; readonly way: 'intercepted' | 'tunnelled' | 'in plaintext' }
  | { readonly refused: string };

export type Semantics = AsyncDisposable & {
  /** In `url` and in the documents, `TLS` and `CLEAR` are replaced by the ports of the origins, `CALLBACK` by a URL. */
  ask(options: {
    readonly url: string;
    readonly document: unknown;
    readonly operator?: TestSidecarOptions['config'];
    readonly names?: TestSidecarOptions['names'];
  }): Promise<{ readonly fate: Fate; readonly calls: number; readonly lookups: readonly string[] }>;
};

const AGENT_FIELDS = ['Authorization: agent', 'x-mark:  as sent '];

/** A rule that injects its own name. */
export function rule(name: string, hosts: readonly string[], more: object = {}): object {
  const headers = [{ name: 'Authorization', type: 'plaintext', value: name }];
  return { name, match_hosts: hosts, headers, ...more };
}

/** A callback whose response is `callback`. */
export function callback(hosts: readonly string[], more: object = {}): object {
  return { match_hosts: hosts, url: 'CALLBACK', ttl_seconds: 60, ...more };
}

export async function createSemantics(): Promise<Semantics> {
  const authority = createTestAuthority('Stand-in for the public CAs');
  // The address first: clients without SNI get this certificate.
  const names = [
    '127.0.0.1',
    'api.test',
    'a.api.test',
    'a.b.api.test',
    'xapi.test',
    'other.test',
    'api.internal',
  ];
  const secure = await createOrigin({ tls: { authority, names } });
  const clear = await createOrigin();
  const endpoint = await createCallbackEndpoint({ headers: { Authorization: 'callback' } });
  const origins = [secure, clear];

  const placed = (value: unknown): unknown =>
    JSON.parse(
      JSON.stringify(value ?? {})
        .replaceAll('"TLS"', String(secure.port))
        .replaceAll('TLS', String(secure.port))
        .replaceAll('CLEAR', String(clear.port))
        .replaceAll('CALLBACK', endpoint.url),
    );

  return {
    async ask({ url, document, operator, names: responses }) {
      const before = origins.map(({ connections }) => connections);
      const callsBefore = endpoint.calls.length;
      await using proxy = await createTestSidecar({
        proxyConfig: placed(document),
        origins: authority,
        // placed() returns an object for an object.
        config: placed({ timeouts: { drain_ms: 100 }, ...operator }) as Readonly<Record<string, unknown>>,
        ...(responses ? { names: responses } : {}),
      });
      const fate = await send(
        proxy.port,
        new PlacedUrl(String(placed(url))),
        origins,
        authority.certificatePem,
      );
      const isSilent = origins.every(({ connections }, i) => connections === before[i]);
      if ('refused' in fate && !isSilent)
        throw new Error(`rejected (${fate.refused}), but an origin was dialled`);
      return { fate, calls: callsSince(endpoint, callsBefore), lookups: [...proxy.lookups] };
    },
    async [Symbol.asyncDispose]() {
      await endpoint[Symbol.asyncDispose]();
      for (const origin of origins) await origin.close();
    },
  };
}

function callsSince(endpoint: CallbackEndpoint, before: number): number {
  return endpoint.calls.length - before;
}

/** The parts of a URL as written: the URL class would normalize them. */
class PlacedUrl {
  readonly scheme: string;
  readonly authority: string;
  readonly target: string;

  constructor(text: string) {
    const [, scheme = '', authority = '', target = ''] = /^([a-z+]+):\/\/([^/?]*)(.*)$/.exec(text) ?? [];
    this.scheme = scheme;
    this.authority = authority;
    this.target = target === '' ? '/' : target;
  }

  /** Verified like a client does. */
  get host(): string {
    return this.authority.replace(/:\d+$/, '').toLowerCase().replace(/\.$/, '');
  }
}

async function send(
  port: number,
  url: PlacedUrl,
  origins: readonly RecordingOrigin[],
  publicPem: string,
): Promise<Fate> {
  const counts = origins.map(({ requests }) => requests.length);
  await using client = await WireClient.connect(port);
  let way: 'intercepted' | 'tunnelled' | 'in plaintext' = 'in plaintext';
  // `http+tunnel` is plain HTTP inside a CONNECT tunnel, as `curl -p` sends it.
  if (url.scheme !== 'http') {
    const opened = await client.openTunnel(url.authority);
    if (opened.status !== 200) return { refused: errorOf(opened) };
  }
  if (url.scheme === 'https') {
    const trusted = `${proxyAuthority.certificatePem}\n${publicPem}`;
    const socket = await client.startTls({ ca: trusted, name: url.host });
    const issuer = socket.getPeerCertificate().issuer.CN;
    way = issuer === 'Sallyport test CA' ? 'intercepted' : 'tunnelled';
  }
  const target = url.scheme === 'http' ? `http://${url.authority}${url.target}` : url.target;
  const fields = [`Host: ${url.authority}`, ...AGENT_FIELDS];
  await client.send(`GET ${target} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
  const { head } = await client.readResponse();
  const arrived = origins.flatMap(({ requests }, i) => requests.slice(counts[i]));
  if (head.status !== 200) {
    if (arrived.length > 0) throw new Error('a rejected request arrived');
    return { refused: errorOf(head) };
  }
  const [request] = arrived;
  if (request === undefined || arrived.length > 1) throw new Error(`${arrived.length} requests arrived`);
  return { saw: sightOf(request, url), way };
}

function errorOf(head: { readonly headers: OriginRequest['headers'] }): string {
  return headerValues(head, 'x-sallyport-error').join() || 'no code';
}

/** The one `Authorization`; the agent's own only counts when every byte of its head is unchanged. */
function sightOf(request: OriginRequest, url: PlacedUrl): string {
  const saw = headerValues(request, 'authorization').join(' and ');
  const sent = `GET ${url.target} HTTP/1.1\r\nHost: ${url.authority}\r\n${AGENT_FIELDS.join('\r\n')}\r\n\r\n`;
  return saw === 'agent' && request.head !== sent ? `agent, changed: ${request.head}` : saw;
}
