// Posts one batch of records to the platform. No redirect is followed: the token is for this host only. Independent of the
// content of records and of the retries.
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { Secret } from '../../base/secret.ts';
import { codeOf } from '../../tls/pem-files.ts';

export type Posted =
  | { readonly kind: 'accepted' }
  /** The platform will never accept the batch as it is. */
  | { readonly kind: 'rejected'; readonly cause: string }
  | { readonly kind: 'retry'; readonly cause: string; readonly afterMs: number };

export type Batch = { readonly count: number; readonly body: Buffer };

export type RecordPost = ReturnType<typeof createRecordPost>;

/** Of all sandboxes together. */
const MAX_SOCKETS = 16;
const MAX_RESPONSE_BYTES = 4_096;
/** The longest Retry-After that is respected. */
const MAX_AFTER_MS = 60_000;

export function createRecordPost(url: string, caPem: string | undefined, timeoutMs: number) {
  const target = new URL(`${url}/v1/sandbox-records`);
  const pool = { keepAlive: true, maxSockets: MAX_SOCKETS };
  const isTls = target.protocol === 'https:';
  // Agents of our own: proxies and certificate checks that the environment sets must not apply here.
  const agent = isTls
    ? new HttpsAgent({ ...pool, rejectUnauthorized: true, ...(caPem === undefined ? {} : { ca: caPem }) })
    : new HttpAgent(pool);
  const start = isTls ? requestHttps : requestHttp;
  return {
    /** Never rejects. */
    async post({ count, body }: Batch, token: Secret, signal: AbortSignal): Promise<Posted> {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      try {
        const headers = {
          Authorization: `Bearer ${token.reveal()}`,
          'Content-Type': 'application/json',
          'Content-Length': body.length,
        };
        const request = start(target, { method: 'POST', agent, headers, signal: limit }, resolve);
        request.on('error', reject);
        request.end(body);
        return await readOutcome(await promise, count);
      } catch (error) {
        // The code alone: a message may quote an address or the request.
        return retry(limit.aborted ? 'no response in time' : String(codeOf(error) ?? 'failed'));
      }
    },
    close: (): void => agent.destroy(),
  };
}

async function readOutcome(response: IncomingMessage, count: number): Promise<Posted> {
  const { statusCode: status = 0, headers } = response;
  const text = await readText(response);
  const cause = `status ${status}`;
  if (status === 200)
    return isReceipt(text, count) ? { kind: 'accepted' } : retry('a response that is no receipt');
  if (status === 400 || status === 413 || status === 422) return { kind: 'rejected', cause };
  // Every other status may change: a token may be replaced, the platform or a gateway before it may recover.
  return retry(cause, headers['retry-after']);
}

/** The platform's confirmation for this batch. Any other server that responds 200 has stored nothing. */
function isReceipt(text: string, count: number): boolean {
  try {
    return JSON.parse(text).received === count;
  } catch {
    return false;
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    length += piece.length;
    // Leaving the loop closes the connection.
    if (length > MAX_RESPONSE_BYTES) return '';
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function retry(cause: string, retryAfter: string = ''): Posted {
  const afterMs = /^\d{1,6}$/.test(retryAfter) ? Math.min(Number(retryAfter) * 1_000, MAX_AFTER_MS) : 0;
  return { kind: 'retry', cause, afterMs };
}
