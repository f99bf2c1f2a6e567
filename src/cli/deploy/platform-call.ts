// One call of the platform's API. Redirects are not followed: the key belongs to the host that was named.
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { codeOf } from '../../tls/pem-files.ts';
import { escapeControls } from '../issue-lines.ts';
import type { ApiConnection } from './connection.ts';

export type Call = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number>>;
  /** Sent as JSON. */
  readonly body?: unknown;
};

/** No response came: the platform may have done what was asked, or not. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
}

/** A response that is no success. */
export class CallRejected extends Error {
  override readonly name = 'CallRejected';
  readonly status: number;
  /** From Retry-After. */
  readonly retryAfterMs: number | undefined;
  /** What is wrong where; empty for a rejection as a whole. */
  readonly problems: readonly Problem[];

  constructor(
    message: string,
    status: number,
    more: Pick<Partial<CallRejected>, 'retryAfterMs' | 'problems'> = {},
  ) {
    super(message);
    this.status = status;
    this.retryAfterMs = more.retryAfterMs;
    this.problems = more.problems ?? [];
  }
}

export type Problem = { readonly loc: readonly unknown[]; readonly msg: string };

const TIMEOUT_MS = 30_000;
/** Without a byte of an upload: the network may be slow. */
const UPLOAD_IDLE_MS = 60_000;
const MAX_REPLY_BYTES = 32 * 2 ** 20;

/** The document of a response with status 2xx; undefined for an empty one. */
export async function call(to: ApiConnection, { method, path, query, body }: Call): Promise<unknown> {
  const url = new URL(to.url);
  url.pathname = `${to.url.pathname.replace(/\/+$/, '')}${path}`;
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, String(value));
  const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const headers = {
    'X-Api-Key': to.key.reveal(),
    Accept: 'application/json',
    ...(to.workspace === undefined ? {} : { 'X-Tenant-Id': to.workspace }),
    ...(content === undefined
      ? {}
      : { 'Content-Type': 'application/json', 'Content-Length': content.length }),
  };
  const sent = open(url, { method, headers, timeout: TIMEOUT_MS });
  const reply = await receive(sent, url, TIMEOUT_MS, async () => void sent.end(content)).catch(withCure);
  return accept(reply, `${method} ${path}`);
}

/** PUTs `content` to an address that carries its own permission: no key is sent there. */
export async function putContent(address: URL, content: Readable, bytes: number): Promise<void> {
  const headers = {
    'Content-Type': 'application/gzip',
    'Content-Length': bytes,
    // Some stores check it, because it is a part of what they signed.
    'X-Goog-Content-Length-Range': '0,209715200',
  };
  const sent = open(address, { method: 'PUT', headers, timeout: UPLOAD_IDLE_MS });
  const reply = await receive(sent, address, undefined, () => pipeline(content, sent));
  accept(reply, 'the upload');
}

/** EPROTO: TLS is not spoken there. */
const NOBODY_THERE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'EPROTO']);

/** Of the platform alone: nobody sets the address of an upload. */
function withCure(error: unknown): never {
  if (!(error instanceof TransportError) || !NOBODY_THERE.has(String(codeOf(error.cause)))) throw error;
  const cure = 'start the platform, or correct --host-url or SALLYPORT_API_URL';
  throw new TransportError(`${error.message}: ${cure}`, { cause: error.cause });
}

type Reply = { readonly status: number; readonly retryAfter: string | undefined; readonly text: string };

function open(url: URL, options: Parameters<typeof requestHttp>[1] & object): ClientRequest {
  return url.protocol === 'https:' ? requestHttps(url, options) : requestHttp(url, options);
}

/** `deadlineMs`: until the whole response has come. */
async function receive(
  sent: ClientRequest,
  url: URL,
  deadlineMs: number | undefined,
  send: () => Promise<void>,
): Promise<Reply> {
  const timer = deadlineMs === undefined ? undefined : setTimeout(() => expire(sent), deadlineMs);
  sent.on('timeout', () => expire(sent));
  try {
    const responded = once(sent, 'response');
    // A response may come before everything is sent, and an error of the rest does not count then.
    const sending = send().then(() => responded);
    sending.catch(() => undefined);
    const [response] = (await Promise.race([responded, sending])) as [IncomingMessage];
    return await readReply(response);
  } catch (cause) {
    throw new TransportError(`${url.origin} ${reasonOf(cause)}`, { cause });
  } finally {
    clearTimeout(timer);
    sent.destroy();
  }
}

function expire(sent: ClientRequest): void {
  sent.destroy(Object.assign(new Error('no response in time'), { code: 'ETIMEDOUT' }));
}

function reasonOf(error: unknown): string {
  const code = codeOf(error) ?? (error instanceof Error ? error.message : 'unknown error');
  return code === 'ETIMEDOUT' ? 'did not respond in time' : `cannot be reached (${String(code)})`;
}

async function readReply(response: IncomingMessage): Promise<Reply> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_REPLY_BYTES) throw new Error('a response of more than 32 MiB');
    chunks.push(chunk);
  }
  const { statusCode: status = 0, headers } = response;
  return { status, retryAfter: headers['retry-after'], text: Buffer.concat(chunks).toString('utf8') };
}

function accept({ status, retryAfter, text }: Reply, what: string): unknown {
  const document = parseDocument(text);
  if (status >= 200 && status <= 299) {
    if (document === INVALID) throw new CallRejected(`${what}: the response is no JSON document`, status);
    return document;
  }
  if (status >= 300 && status <= 399)
    throw new CallRejected(
      `${what} is redirected (${status}): set --host-url to the platform itself`,
      status,
    );
  if (status === 404 && isForeign(document))
    throw new CallRejected(
      `${what}: 404, and not from a platform: check --host-url or SALLYPORT_API_URL`,
      status,
    );
  const seconds = Number(retryAfter);
  const retryAfterMs = retryAfter === undefined || Number.isNaN(seconds) ? undefined : seconds * 1000;
  const problems = problemsOf(document);
  throw new CallRejected(`${what}: ${status}${detailOf(document, text)}`, status, { retryAfterMs, problems });
}

const INVALID = Symbol('invalid');

/** A 404 of something else than the API of a platform: a page, a gateway of sandboxes or deployments, metrics. */
function isForeign(document: unknown): boolean {
  const detail = (document as { readonly detail?: unknown } | undefined)?.detail;
  if (typeof detail !== 'string') return !Array.isArray(detail);
  return /^(?:There is no such path|No target has this name)/.test(detail);
}

function parseDocument(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return INVALID;
  }
}

/** `{detail}` is a sentence, or a list of what is wrong where. */
function detailOf(document: unknown, text: string): string {
  const detail = (document as { readonly detail?: unknown } | undefined)?.detail;
  if (typeof detail === 'string') return `: ${escapeControls(detail)}`;
  if (!Array.isArray(detail)) return text === '' ? '' : `: ${escapeControls(text.slice(0, 300))}`;
  return problemsOf(document)
    .map(({ loc, msg }) => `\n  ${loc.join('.')}: ${msg}`)
    .join('');
}

function problemsOf(document: unknown): readonly Problem[] {
  const detail = (document as { readonly detail?: unknown } | undefined)?.detail;
  if (!Array.isArray(detail)) return [];
  return (detail as readonly Partial<Problem>[]).map(({ loc, msg }) => ({
    loc: (Array.isArray(loc) ? loc : []).map((part) => escapeControls(String(part))),
    msg: escapeControls(String(msg)),
  }));
}
