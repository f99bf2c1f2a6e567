// Every refusal of the catalogue, provoked: its configuration and what the client sends. Each leaves one record with its
// code and status.
import { expect } from 'vitest';
import type { RefusalCode } from '../../src/proxy/refusal.ts';
import { response } from '../support/recording-origin.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import type { WireClient } from '../support/wire-client.ts';
import { type Scene, type SceneOptions, bearerRule, head, publicAuthority } from './credential-scene.ts';

export type RefusalRow = {
  readonly code: RefusalCode;
  readonly options?: SceneOptions;
  /** Provokes one refusal; returns the client that got it. */
  provoke(scene: Scene): Promise<WireClient>;
};

const silence = (): Promise<void> => new Promise(() => {});

/** On the proxy port. */
function sends(bytes: string | ((scene: Scene) => string)): RefusalRow['provoke'] {
  return async (scene) => {
    const client = await scene.client();
    await client.send(typeof bytes === 'string' ? bytes : bytes(scene));
    return client;
  };
}

/** Inside the tunnel to api.test. */
function asks(startLine: string, fields: readonly string[] = [], host?: string): RefusalRow['provoke'] {
  return async (scene) => {
    const client = await scene.tunnel();
    await client.send(head(startLine, host ?? scene.at(), fields));
    return client;
  };
}

const exposed = (): SceneOptions['config'] => () => ({ listen: '0.0.0.0:0', auth: 'none' });

/** Rules that begin to intercept a host during its lookup for a blind tunnel. */
function rulesChanged(): RefusalRow {
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  return {
    code: 'rules_changed',
    options: { resolve: { 'late.test': promise } },
    async provoke(scene) {
      const client = await sends(({ at }) => head(`CONNECT ${at('late.test')}`, 'late.test'))(scene);
      await expect.poll(() => scene.proxy.lookups).toEqual(['late.test']);
      scene.proxy.apply({ rules: [bearerRule('late.test')] });
      resolve(['127.0.0.1']);
      return client;
    },
  };
}

export const refusals: readonly RefusalRow[] = [
  { code: 'malformed_request', provoke: sends('GET http://a.test/ HTTP/1.1\r\nBad Name: x\r\n\r\n') },
  { code: 'malformed_request', provoke: asks('GET /', ['Bad Name: x']) },
  { code: 'authority_invalid', provoke: sends(head('CONNECT 127.1:443', 'a.test')) },
  { code: 'host_invalid', provoke: sends('GET http://a.test/ HTTP/1.1\r\n\r\n') },
  { code: 'host_mismatch', provoke: sends(head('GET http://a.test/', 'b.test')) },
  { code: 'target_invalid', provoke: sends(head('GET ftp://a.test/', 'a.test')) },
  { code: 'use_connect', provoke: sends(head('GET https://a.test/', 'a.test')) },
  { code: 'not_a_proxy_request', provoke: sends(head('GET /', 'a.test')) },
  { code: 'tls_at_proxy_port', provoke: sends('\x16\x03\x01\x02\x00\x01\x00') },
  { code: 'socks_at_proxy_port', provoke: sends('\x05\x01\x00') },
  {
    code: 'ambiguous_path',
    options: { rules: [bearerRule('api.test', { match_paths: ['/v1/*'] })] },
    provoke: asks('GET /v1/%2e%2e/x'),
  },
  {
    code: 'access_denied',
    async provoke(scene) {
      scene.proxy.apply({ access_control: { deny_list: ['a.test'] } });
      return sends(head('CONNECT a.test:443', 'a.test'))(scene);
    },
  },
  { code: 'reserved_host', provoke: sends(head('CONNECT sallyport.internal:443', 'sallyport.internal')) },
  { code: 'reserved_path', provoke: sends(head('GET http://sallyport.internal/x', 'sallyport.internal')) },
  { code: 'reserved_method', provoke: sends(head('POST http://sallyport.internal/', 'sallyport.internal')) },
  {
    code: 'client_denied',
    options: { config: () => ({ allow_clients: ['10.0.0.0/8'] }) },
    provoke: (scene) => scene.client(),
  },
  {
    code: 'port_denied',
    options: { config: exposed(), resolve: { 'a.test': new Error('must not be looked up') } },
    provoke: sends(head('CONNECT a.test:22', 'a.test')),
  },
  {
    code: 'address_denied',
    provoke: sends(({ proxy }) => head(`CONNECT 127.0.0.1:${proxy.port}`, 'a.test')),
  },
  {
    code: 'address_private',
    options: { config: exposed() },
    provoke: sends(head('CONNECT localhost:443', 'x')),
  },
  { code: 'cleartext_refused', provoke: sends((scene) => head(`GET http://${scene.at()}/`, scene.at())) },
  { code: 'method_refused', provoke: sends(head('TRACE http://a.test/', 'a.test')) },
  {
    code: 'proxy_auth_required',
    provoke: sends(head('GET http://a.test/', 'a.test', ['Proxy-Authorization: Bearer nobody'])),
  },
  {
    code: 'request_timeout',
    options: { config: () => ({ timeouts: { head_ms: 20 } }) },
    provoke: sends('GET http'),
  },
  {
    code: 'uri_too_long',
    options: { config: () => ({ limits: { max_target_bytes: 64 } }) },
    provoke: sends(head(`GET http://a.test/${'x'.repeat(64)}`, 'a.test')),
  },
  { code: 'expectation_failed', provoke: asks('GET /', ['Expect: miracles']) },
  { code: 'authority_mismatch', provoke: asks('GET /', [], 'b.test') },
  {
    code: 'head_too_large',
    options: { config: () => ({ limits: { max_request_head_bytes: 256 } }) },
    provoke: sends(head('GET http://a.test/', 'a.test', [`X: ${'x'.repeat(256)}`])),
  },
  { code: 'transfer_coding_refused', provoke: asks('POST /', ['Transfer-Encoding: gzip']) },
  {
    code: 'callback_failed',
    options: {
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: 'http://127.0.0.1:1/', ttl_seconds: 60 }],
    },
    provoke: asks('GET /'),
  },
  {
    code: 'rule_unusable',
    options: { rules: [bearerRule('api.test', { refuse: 'its secret is gone' })] },
    provoke: asks('GET /'),
  },
  { code: 'dns_failed', options: { resolve: { 'api.test': new Error('no name') } }, provoke: asks('GET /') },
  {
    code: 'upstream_unreachable',
    async provoke(scene) {
      const client = await scene.tunnel();
      await scene.origin.close();
      await client.send(head('GET /', scene.at()));
      return client;
    },
  },
  {
    code: 'upstream_untrusted',
    options: { tls: { authority: createTestAuthority('An untrusted CA'), names: ['api.test'] } },
    provoke: asks('GET /'),
  },
  {
    code: 'client_certificate_required',
    options: { tls: { authority: publicAuthority, names: ['api.test'], requiresCertificate: true } },
    provoke: asks('GET /'),
  },
  { code: 'upstream_closed', options: { respond: ({ end }) => end() }, provoke: asks('GET /') },
  {
    code: 'upstream_malformed',
    options: { respond: ({ send }) => send('HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n') },
    provoke: asks('GET /'),
  },
  {
    code: 'upstream_asks_proxy_auth',
    options: { respond: ({ send }) => send(response(407, [])) },
    provoke: asks('GET /'),
  },
  {
    code: 'scrub_impossible',
    options: {
      rules: [bearerRule('api.test', { scrub: 'body' })],
      respond: ({ send }) => send(response(200, [['Content-Encoding', 'gzip']], 'x')),
    },
    provoke: asks('GET /'),
  },
  {
    code: 'too_many_connections',
    options: { config: () => ({ limits: { max_waiting: 1 } }) },
    async provoke(scene) {
      const first = await scene.client();
      await scene.client();
      return first;
    },
  },
  {
    code: 'record_sink_blocked',
    async provoke(scene) {
      scene.proxy.blockSink(true);
      return sends(head('CONNECT a.test:443', 'a.test'))(scene);
    },
  },
  rulesChanged(),
  {
    code: 'upstream_timeout',
    options: { respond: silence, config: () => ({ timeouts: { response_idle_ms: 50 } }) },
    provoke: asks('GET /'),
  },
  { code: 'version_refused', provoke: sends('GET http://a.test/ HTTP/2.0\r\nHost: a.test\r\n\r\n') },
];
