// A scripted callback endpoint: a team's token service as the proxy sees it. Counts its calls and stores the request of
// each one.
import { createOrigin, jsonResponse, type Exchange, type OriginOptions } from './recording-origin.ts';
import type { HeaderList } from './message-reader.ts';

export type CallbackCall = { readonly target: string; readonly headers: HeaderList; readonly body: unknown };

/** The response to the nth call: an object is sent as 200 JSON, bytes are sent unchanged, a function handles the exchange. */
export type CallbackResponse = object | Buffer | ((exchange: Exchange) => Promise<void>);

export type CallbackEndpoint = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  readonly calls: readonly CallbackCall[];
  /** Sets the responses to all later calls. */
  respondWith(response: CallbackResponse): void;
};

export async function createCallbackEndpoint(
  response: CallbackResponse,
  tls?: OriginOptions['tls'],
): Promise<CallbackEndpoint> {
  const calls: CallbackCall[] = [];
  let current = response;
  const respond = async (exchange: Exchange): Promise<void> => {
    const { content } = await exchange.readBody();
    const { target, headers } = exchange.request;
    calls.push({ target, headers, body: parseJson(content.toString('utf8')) });
    if (typeof current === 'function') await current(exchange);
    else await exchange.send(Buffer.isBuffer(current) ? current : jsonResponse(current));
  };
  const origin = await createOrigin(tls === undefined ? { respond } : { respond, tls });
  const base = tls === undefined ? 'http://127.0.0.1' : `https://${tls.names[0]}`;
  return {
    url: `${base}:${origin.port}/credentials`,
    port: origin.port,
    calls,
    respondWith(next) {
      current = next;
    },
    [Symbol.asyncDispose]: () => origin.close(),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
