// The servers behind the proxy of the canary test: hosts that send back what they got, or fail in every way after they got
// it, and a callback endpoint that does the same. They never send it to the agent in a body: the proxy does not search
// bodies by default.
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import {
  createOrigin,
  type Exchange,
  jsonResponse,
  type RecordingOrigin,
  response,
} from '../support/recording-origin.ts';
import { createTestAuthority, type TestAuthority } from '../support/test-authority.ts';
import type { CanaryValues } from './canary-values.ts';

export const publicAuthority: TestAuthority = createTestAuthority('Public');
const outsider = createTestAuthority('Untrusted');

/** Names in the certificate of the valid host. */
const NAMES = ['opaque', 'file', 'variable', 'admin', 'called', 'plain'].map((name) => `${name}.test`);

export type CanaryPeers = AsyncDisposable & {
  readonly origin: RecordingOrigin;
  /** Its certificate is of an untrusted authority. */
  readonly untrusted: RecordingOrigin;
  readonly callback: CallbackEndpoint;
};

export async function createCanaryPeers(values: CanaryValues): Promise<CanaryPeers> {
  const origin = await createOrigin({
    tls: { authority: publicAuthority, names: NAMES },
    respond: giveBack,
  });
  const untrusted = await createOrigin({ tls: { authority: outsider, names: ['untrusted.test'] } });
  const callback = await createCallbackEndpoint(goodResponse(values));
  return {
    origin,
    untrusted,
    callback,
    async [Symbol.asyncDispose]() {
      await Promise.all([origin.close(), untrusted.close(), callback[Symbol.asyncDispose]()]);
    },
  };
}

export function goodResponse({ callbackResult }: CanaryValues): object {
  return { headers: { Authorization: `Bearer ${callbackResult}` } };
}

/** Invalid callback responses, each with both secrets of a callback in it. */
export function badResponses({
  callbackHeader,
  callbackResult,
}: CanaryValues): readonly ((exchange: Exchange) => Promise<void>)[] {
  const both = `${callbackHeader} ${callbackResult}`;
  const responses = [
    jsonResponse({ error: both }, 500),
    response(200, [['X-Echo', both]], `{"headers": {"Authorization": ${both}`),
    response(302, [['Location', `/${both}`]], both),
    jsonResponse({ headers: { Authorization: `${both}\r\n` } }),
    jsonResponse({ headers: { [both]: 'x' } }),
    jsonResponse({ headers: both }),
    Buffer.from(`HTTP/1.1 2 ${both}\r\n${both}\r\n\r\n`),
  ];
  return responses.map((bytes) => async ({ send, end }) => {
    await send(bytes);
    end();
  });
}

/** Depending on the path: sends every injected value back in its head in many forms, or fails. */
async function giveBack({ request, send, reset, end }: Exchange): Promise<void> {
  const values = request.headers
    .filter(([name]) => ['authorization', 'x-api-key', 'x-other'].includes(name.toLowerCase()))
    .flatMap(([, value]) => [value, value.replace(/^Bearer /, '')]);
  const [first = ''] = values;
  const forms = values.flatMap(formsOf);
  switch (request.target) {
    case '/malformed':
      return send(`HTTP/1.1 200 OK\r\n${first}\r\n\r\n`).then(end);
    case '/proxy-auth':
      return send(response(407, [['Proxy-Authenticate', `Basic realm="${first}"`]]));
    case '/reset':
      return reset();
    case '/cut':
      return send(`HTTP/1.1 200 ${first}\r\nX-Echo: ${first}\r\nContent-Length: 9\r\n\r\ncut`).then(reset);
    case '/upgrade':
      return send(
        `HTTP/1.1 101 ${first}\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Echo: ${first}\r\n\r\n`,
      ).then(end);
    default: {
      const echoes = forms.map((form) => `X-Echo: ${form}\r\n`).join('');
      await send(`HTTP/1.1 103 ${first}\r\n${echoes}\r\n`);
      await send(
        `HTTP/1.1 302 ${first}\r\nLocation: /?key=${encodeURIComponent(first)}\r\n${echoes}Content-Length: 0\r\n\r\n`,
      );
    }
  }
}

function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const base64 = (before: string): Buffer => Buffer.concat([Buffer.from(before), bytes]);
  return [
    value,
    JSON.stringify({ authorization: value }),
    encodeURIComponent(value),
    ...['', 'x', 'xy'].map((before) => base64(before).toString('base64')),
    ...['', 'x', 'xy'].map((before) => base64(before).toString('base64url')),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
  ];
}
