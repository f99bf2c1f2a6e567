// One call to a scripted endpoint, as the client tests make it.
import { Secret } from '../../src/base/secret.ts';
import { type CallbackTrust, createCallbackClient, type VetHost } from '../../src/callback/client.ts';
import type { CallbackReply } from '../../src/callback/reply.ts';
import type { CompiledCallback } from '../../src/policy/policy.ts';
import {
  createOrigin,
  type Exchange,
  type OriginOptions,
  type RecordingOrigin,
  response,
} from '../support/recording-origin.ts';
import { authorityOf, vetLoopback } from './compiled-callback.ts';

/** A credential in the response of an endpoint, and the secret in the request to it. */
export const CANARY = 'canary-91c07a';
export const SHARED = 'shared-secret-5d2e';

export const BODY: string = JSON.stringify({ headers: { Authorization: CANARY } });
export const good: Buffer = response(200, [], BODY);
export const withSecret: Pick<CompiledCallback, 'requestHeaders'> = {
  requestHeaders: [{ name: 'X-Shared', value: new Secret(SHARED) }],
};

/** The reason of a failure below HTTP's meaning. */
export const failed = (code: string): string => `transport failed: ${code}`;

export type Script = Buffer | string | ((exchange: Exchange) => void | Promise<void>);

export function originOf(script: Script, tls?: OriginOptions['tls']): Promise<RecordingOrigin> {
  const respond = async (exchange: Exchange): Promise<void> => {
    await exchange.readBody();
    if (typeof script === 'function') await script(exchange);
    else await exchange.send(script);
  };
  return createOrigin(tls === undefined ? { respond } : { respond, tls });
}

export type Settings = {
  vet?: VetHost;
  trust?: CallbackTrust;
  timeoutMs?: number;
};

export async function callOnce(callback: CompiledCallback, settings: Settings = {}): Promise<CallbackReply> {
  const client = createCallbackClient({ vet: vetLoopback, trust: undefined, timeoutMs: 10_000, ...settings });
  try {
    return await client.call(callback, authorityOf('api.test:8443'));
  } finally {
    await client.close();
  }
}
