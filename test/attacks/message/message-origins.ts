// The origins of the `message` rows: with TLS and in plaintext, two hosts on two addresses; all store every byte. The path
// selects the response (see message-script.ts). No field is echoed, so that a trace of the secret at the client is a leak of
// the proxy.
import { headerValues } from '../../support/message-reader.ts';
import {
  type Exchange,
  type RecordingOrigin,
  createOrigin,
  response,
} from '../../support/recording-origin.ts';
import type { TestAuthority } from '../../support/test-authority.ts';
import type { EntryPoint } from './message-script.ts';

export type MessageOrigins = AsyncDisposable & {
  readonly all: readonly RecordingOrigin[];
  /** The origins of api.test. */
  readonly own: Readonly<Record<EntryPoint, RecordingOrigin>>;
  /** The origins of evil.test. */
  readonly evil: Readonly<Record<EntryPoint, RecordingOrigin>>;
};

/** The name table of the scene. */
export const names: Readonly<Record<string, readonly string[]>> = {
  'evil.test': ['127.0.0.2'],
  'www.evil.test': ['127.0.0.2'],
};

export async function createMessageOrigins(authority: TestAuthority): Promise<MessageOrigins> {
  const tls = { authority, names: ['api.test', 'other.test'] };
  const evilTls = { authority, names: ['evil.test', 'api.test'] };
  const own = { plain: await createOrigin({ respond }), tunnel: await createOrigin({ respond, tls }) };
  const address = '127.0.0.2';
  const evil = {
    plain: await createOrigin({ respond, address }),
    tunnel: await createOrigin({ respond, address, tls: evilTls }),
  };
  const all = [own.plain, own.tunnel, evil.plain, evil.tunnel];
  return {
    all,
    own,
    evil,
    async [Symbol.asyncDispose]() {
      for (const origin of all) await origin.close();
    },
  };
}

async function respond(exchange: Exchange): Promise<void> {
  const { request, send, readBody, reader, end } = exchange;
  const { method, target } = request;
  const isUpgrade = headerValues(request, 'upgrade').length > 0;
  const waits = headerValues(request, 'expect').length > 0;
  if (isUpgrade && target.startsWith('/ws')) {
    await send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    await reader.readToEnd();
    return end();
  }
  if (target.startsWith('/declines')) return send(response(401, [], `${method} ${target}`));
  if (target.startsWith('/early')) return send(responseOf(method, target));
  if (waits && !target.startsWith('/silent')) await send('HTTP/1.1 100 Continue\r\n\r\n');
  await readBody();
  await send(responseOf(method, target));
}

function responseOf(method: string, target: string): Buffer {
  return response(200, [], method === 'HEAD' ? '' : Buffer.from(`${method} ${target}`, 'latin1'));
}
