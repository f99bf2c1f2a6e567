// The setup of the interoperability tests: a spawned proxy with one rule, one callback and one secret, a TLS origin and a
// plain one on loopback. The origins never echo a header, so that a secret in the output of a client can only come from the
// proxy.
import { createCallbackEndpoint, type CallbackEndpoint } from '../support/callback-endpoint.ts';
import { headerValues } from '../support/message-reader.ts';
import {
  createOrigin,
  jsonResponse,
  type Exchange,
  type RecordingOrigin,
} from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';

export const SECRET = 'canary-4f1d9a7be2c8';
export const INJECTED: string = `Bearer ${SECRET}`;

export type Scene = AsyncDisposable & {
  readonly sallyport: SpawnedSallyport;
  readonly proxy: { readonly url: string; readonly caFile: string };
  /** TLS with certificates for good.test (rule), callback.test (callback) and other.test (neither). */
  readonly origin: RecordingOrigin;
  readonly plainOrigin: RecordingOrigin;
  readonly callback: CallbackEndpoint;
  readonly scratch: Scratch;
};

export async function createScene(
  options: {
    readonly respond?: (exchange: Exchange) => void | Promise<void>;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<Scene> {
  const authority = createTestAuthority();
  const respond = options.respond ?? summarize;
  const names = ['good.test', 'callback.test', 'other.test'];
  const scratch = await createScratch();
  const origin = await createOrigin({ tls: { authority, names }, respond });
  const plainOrigin = await createOrigin({ respond });
  const callback = await createCallbackEndpoint({ headers: { Authorization: INJECTED } });
  const secrets = await scratch.write('secrets.env', `TOKEN=${SECRET}\n`);
  const sallyport = await spawnSallyport({
    proxyConfig: proxyConfig(callback.url),
    upstreamCaPem: authority.certificatePem,
    args: ['--secrets-file', secrets],
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  const parts = [sallyport, origin, plainOrigin, callback, scratch];
  return {
    sallyport,
    proxy: { url: `http://127.0.0.1:${sallyport.port}`, caFile: sallyport.caFile },
    origin,
    plainOrigin,
    callback,
    scratch,
    async [Symbol.asyncDispose]() {
      for (const part of parts) await part[Symbol.asyncDispose]();
    },
  };
}

/** The credentials that the origins received, a list for each request. */
export function credentialsAt(origin: RecordingOrigin): readonly (readonly string[])[] {
  return origin.requests.map((request) => headerValues(request, 'authorization'));
}

async function summarize(exchange: Exchange): Promise<void> {
  if (headerValues(exchange.request, 'expect').length > 0)
    await exchange.send('HTTP/1.1 100 Continue\r\n\r\n');
  const { length, sha256 } = await exchange.readBody();
  const { method, target } = exchange.request;
  await exchange.send(jsonResponse({ method, target, body: { length, sha256 } }));
}

function proxyConfig(callbackUrl: string): unknown {
  const value = 'Bearer {TOKEN}';
  return {
    rules: [
      {
        name: 'good',
        match_hosts: ['good.test'],
        headers: [{ name: 'Authorization', type: 'workspace_secret', value }],
      },
    ],
    callbacks: [{ match_hosts: ['callback.test'], url: callbackUrl, ttl_seconds: 60 }],
  };
}
