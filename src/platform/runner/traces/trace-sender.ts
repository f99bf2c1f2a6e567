// Sends requests of a deployment to the platform, with the token of the deployment. One of the files that read the value of a secret: the
// token leaves this process in a request to the platform alone, and the deployment never has it.
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { once } from 'node:events';
import type { Secret } from '../../../base/secret.ts';
import type { TraceRequest } from './trace-request.ts';

export type TraceResponse = {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

export type Sending = TraceRequest & {
  /** Undefined: it has none. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
  /** The client has left. */
  readonly signal: AbortSignal;
};

/** Of the whole exchange. */
const DEADLINE_MS = 120_000;
/** Errors say which runs were wrong. */
const MAX_BYTES = 64 * 1024;

/** Rejects with an Error when the platform does not respond, or with what the body throws. */
export async function sendToPlatform(
  platformUrl: string,
  token: Secret,
  { method, path, fields, body, signal }: Sending,
): Promise<TraceResponse> {
  const url = new URL(path, platformUrl);
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  const until = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
  const sent = send(url, {
    // A connection that is kept may have ended, and a request on it cannot be sent again.
    ...{ method, agent: false, signal: until },
    headers: { ...fields, ...framingOf(body, fields), 'x-api-key': token.reveal() },
  });
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve).once('error', reject);
    sent.once('close', () => reject(new Error('the platform has closed the connection')));
  });
  try {
    // A platform that refuses responds before it has read everything.
    const pumped = pump(body, sent, response);
    return await readResponse(await Promise.race([response, pumped.then(() => response)]));
  } finally {
    sent.on('error', () => undefined).destroy();
  }
}

/** Node sends the body of some methods without any framing: its bytes would be the next request. */
function framingOf(body: Sending['body'], fields: Sending['fields']): Readonly<Record<string, string>> {
  return body === undefined || 'content-length' in fields ? {} : { 'transfer-encoding': 'chunked' };
}

/** Ends when the body is sent, or nobody waits for more of it. */
async function pump(
  body: AsyncIterable<Uint8Array> | undefined,
  sent: ClientRequest,
  response: Promise<unknown>,
): Promise<void> {
  let hasResponded = false;
  const responded = response.then(
    () => (hasResponded = true),
    () => (hasResponded = true),
  );
  for await (const piece of body ?? []) {
    if (hasResponded || sent.destroyed) return;
    if (!sent.write(piece)) await Promise.race([once(sent, 'drain').catch(() => undefined), responded]);
  }
  if (!sent.destroyed) sent.end();
}

async function readResponse(response: IncomingMessage): Promise<TraceResponse> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_BYTES) break;
    pieces.push(piece);
  }
  const { 'content-type': type, 'retry-after': wait } = response.headers;
  return {
    status: response.statusCode ?? 502,
    fields: {
      ...(type !== undefined && { 'Content-Type': type }),
      ...(wait !== undefined && { 'Retry-After': wait }),
    },
    body: bytes > MAX_BYTES ? Buffer.alloc(0) : Buffer.concat(pieces),
  };
}
