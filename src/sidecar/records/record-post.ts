// One batch of records to the platform and what became of it. No redirect is followed: the token is for this host. It
// must not know what a record holds, nor when to try again.
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { Secret } from '../../base/secret.ts';

export type Posted =
  | { readonly kind: 'taken' }
  /** It will never be taken as it is. */
  | { readonly kind: 'unfit'; readonly cause: string }
  | { readonly kind: 'later'; readonly cause: string; readonly afterMs: number };

export type Batch = { readonly count: number; readonly body: Buffer };

export type RecordPost = {
  /** Never rejects. */
  post(batch: Batch, token: Secret, signal: AbortSignal): Promise<Posted>;
  close(): void;
};

export type RecordPostOptions = {
  readonly url: string;
  readonly caPem: string | undefined;
  readonly timeoutMs: number;
};

/** Of all sandboxes together. */
const MAX_SOCKETS = 16;
const MAX_RESPONSE_BYTES = 4_096;
/** A platform that asks for more patience is asked again all the same. */
const MAX_AFTER_MS = 60_000;

export function createRecordPost({ url, caPem, timeoutMs }: RecordPostOptions): RecordPost {
  const target = new URL(`${url}/v1/sandbox-records`);
  const pool = { keepAlive: true, maxSockets: MAX_SOCKETS };
  const isTls = target.protocol === 'https:';
  // Whatever the environment says of proxies and of verification does not count for these.
  const agent = isTls
    ? new HttpsAgent({ ...pool, rejectUnauthorized: true, ...(caPem === undefined ? {} : { ca: caPem }) })
    : new HttpAgent(pool);
  const start = isTls ? requestHttps : requestHttp;
  return {
    async post({ count, body }, token, signal) {
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
        return await judge(await promise, count);
      } catch (error) {
        return later(limit.aborted ? 'no answer in time' : codeOf(error));
      }
    },
    close: () => agent.destroy(),
  };
}

async function judge(response: IncomingMessage, count: number): Promise<Posted> {
  const { statusCode: status = 0, headers } = response;
  const text = await readText(response);
  const cause = `status ${status}`;
  if (status === 200)
    return isReceipt(text, count) ? { kind: 'taken' } : later('an answer that is no receipt');
  if (status === 400 || status === 413 || status === 422) return { kind: 'unfit', cause };
  // The batch is at fault for nothing else: a token may be replaced, a platform or what stands before it may come back.
  return later(cause, headers['retry-after']);
}

/** The word of the platform for this batch. Whatever else answers 200 has kept nothing. */
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
    // Leaving the loop ends the connection.
    if (length > MAX_RESPONSE_BYTES) return '';
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function later(cause: string, retryAfter: string = ''): Posted {
  const afterMs = /^\d{1,6}$/.test(retryAfter) ? Math.min(Number(retryAfter) * 1_000, MAX_AFTER_MS) : 0;
  return { kind: 'later', cause, afterMs };
}

/** The code alone: a message may hold an address, or what was sent. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'failed';
}
