// Every refusal that a stream can get, provoked over HTTP/2: its configuration and what the client sends. Each leaves one
// record with its code and status. Refusals of HTTP/1.1 or CONNECT only are in record-refusals.ts.
import { expect } from 'vitest';
import type { RefusalCode } from '../../src/proxy/refusal.ts';
import type { H2Exchange } from '../support/h2-exchange.ts';
import { type H2WireClient, refusalOf } from '../support/h2-wire-client.ts';
import { headerValues } from '../support/message-reader.ts';
import type { SentField } from '../support/hpack.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { bearerRule } from './credential-scene.ts';
import type { H2Scene, H2SceneOptions } from './h2-scene.ts';

export type StreamRefusal = {
  readonly code: RefusalCode;
  readonly options?: H2SceneOptions;
  /** Provokes one refusal on a connection of its own; returns the status and code that the client reads. */
  provoke(scene: H2Scene): Promise<Refused>;
  /** The refused client speaks HTTP/1.1. */
  readonly isHttp1?: true;
};
type Refused = readonly [status: number, code: string | undefined];

async function ask(
  client: H2WireClient,
  fields: readonly SentField[] = client.fields('/'),
): Promise<Refused> {
  const response = await client.request(fields);
  return [response.status, refusalOf(response)];
}

const silence = (): Promise<void> => new Promise(() => {});

function asks(
  pseudo: Readonly<Record<string, string | undefined>> = {},
  extra: readonly SentField[] = [],
): StreamRefusal['provoke'] {
  return async (scene) => {
    const client = await scene.client();
    return ask(client, client.fields('/', extra, pseudo));
  };
}

const limits = (limit: object): H2SceneOptions => ({ config: () => ({ limits: limit }) });
const responses = (respond: (exchange: H2Exchange) => unknown): H2SceneOptions => ({
  respond: (exchange) => void respond(exchange),
});

/** Rules that change in each handshake for which a second stream waits. */
function rulesChanged(): StreamRefusal {
  // Once for each dial.
  let change: (() => void) | undefined;
  const origin = { settings: { max_concurrent_streams: 1 }, onAccept: (): void => change?.() };
  return {
    code: 'rules_changed',
    options: { origin, respond: silence },
    async provoke(scene) {
      const client = await scene.client();
      await client.open(client.fields('/held'), { isEnd: true });
      await scene.origin.stream(0);
      change = () => void scene.proxy.apply({ rules: [bearerRule('api.test')] });
      return ask(client);
    },
  };
}

export const streamRefusals: readonly StreamRefusal[] = [
  { code: 'malformed_request', provoke: asks({ ':path': '/a#b' }) },
  { code: 'malformed_request', provoke: asks({}, [['content_length', '1']]) },
  { code: 'host_mismatch', provoke: asks({}, [['host', 'b.test']]) },
  { code: 'target_invalid', provoke: asks({ ':scheme': 'http' }) },
  {
    code: 'ambiguous_path',
    options: { rules: [bearerRule('api.test', { match_paths: ['/v1/*'] })] },
    provoke: asks({ ':path': '/v1/%2e%2e/x' }),
  },
  {
    code: 'access_denied',
    async provoke(scene) {
      const client = await scene.client();
      scene.proxy.apply({ access_control: { deny_list: ['api.test'] } });
      return ask(client);
    },
  },
  {
    code: 'address_denied',
    options: { resolve: { 'api.test': ['169.254.169.254'] } },
    provoke: asks(),
  },
  { code: 'method_refused', provoke: asks({ ':method': 'TRACE' }) },
  {
    code: 'method_refused',
    provoke: asks({ ':method': 'CONNECT', ':scheme': undefined, ':path': undefined }),
  },
  {
    code: 'uri_too_long',
    options: limits({ max_target_bytes: 64 }),
    provoke: asks({ ':path': `/${'x'.repeat(64)}` }),
  },
  { code: 'expectation_failed', provoke: asks({}, [['expect', 'miracles']]) },
  { code: 'authority_mismatch', provoke: asks({ ':authority': 'b.test' }) },
  {
    code: 'head_too_large',
    provoke: asks(
      {},
      Array.from({ length: 100 }, (_, i) => [`x-${i}`, '1'] as const),
    ),
  },
  {
    code: 'callback_failed',
    options: {
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: 'http://127.0.0.1:1/', ttl_seconds: 60 }],
    },
    provoke: asks(),
  },
  { code: 'dns_failed', options: { resolve: { 'api.test': new Error('no name') } }, provoke: asks() },
  {
    code: 'upstream_unreachable',
    async provoke(scene) {
      await scene.origin.close();
      return asks()(scene);
    },
  },
  {
    code: 'upstream_untrusted',
    options: { origin: { tls: { authority: createTestAuthority('An untrusted CA'), names: ['api.test'] } } },
    provoke: asks(),
  },
  { code: 'upstream_closed', options: responses(({ connection }) => connection.end()), provoke: asks() },
  {
    code: 'upstream_malformed',
    options: responses(async ({ interim }) => {
      for (let i = 0; i < 30; i += 1) await interim(103);
    }),
    provoke: asks(),
  },
  { code: 'upstream_asks_proxy_auth', options: responses(({ response }) => response(407)), provoke: asks() },
  { code: 'h2_unavailable', options: { origin: { protocols: ['http/1.1'] } }, provoke: asks() },
  {
    code: 'record_sink_blocked',
    async provoke(scene) {
      const client = await scene.client();
      scene.proxy.blockSink(true);
      return ask(client);
    },
  },
  rulesChanged(),
  {
    code: 'alpn_changed',
    options: { origin: { protocols: ['h2'] } },
    isHttp1: true,
    provoke: askOverHttp1,
  },
  {
    code: 'upstream_timeout',
    options: { respond: silence, config: () => ({ timeouts: { response_idle_ms: 50 } }) },
    provoke: asks(),
  },
];

/** An HTTP/1.1 client of a host that speaks only HTTP/2. */
async function askOverHttp1(scene: H2Scene): Promise<Refused> {
  const client = await scene.wire();
  expect((await client.openTunnel(scene.at())).status).toBe(200);
  await client.startTls({ ca: scene.proxy.caPem, name: 'api.test', alpn: ['http/1.1'] });
  await client.send(`GET / HTTP/1.1\r\nHost: ${scene.at()}\r\n\r\n`);
  const { head } = await client.readResponse();
  return [head.status, headerValues(head, 'x-sallyport-error')[0]];
}
