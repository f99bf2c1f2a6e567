// Every error of the admin API: its code, its status, what happened and what to do. The only file that maps an error to a
// status. No response repeats what was sent.
import {
  type ErrorCode,
  errorResponse,
  type HttpResponse,
  jsonResponse,
  listErrors,
  retryAfter,
} from '../base/http/http-response.ts';
import { capIssues, type Issue, type Loc, prefixed } from '../base/schema.ts';
import type { Problem } from './target.ts';

export type AdminResponse = HttpResponse & {
  /** For the record alone; of an error, its code. */
  readonly reason?: string;
  readonly revision?: number;
  readonly sandbox?: string;
};

// Codes do not change. 507 for `full`: a limit of ours that time does not lift, so that no client retries by itself as it
// may after a 429. 499: nobody reads the response; the status is for the record.
const ERRORS = {
  malformed: [400, 'The request is not HTTP/1.1, or its body is framed wrongly: correct it'],
  tiny_chunks: [400, 'The document has thousands of chunks of a few bytes: send Content-Length instead'],
  framing: [400, 'Transfer-Encoding is not one "chunked" over HTTP/1.1: send Content-Length instead'],
  bad_host: [400, 'Host is missing, repeated or malformed: send one name or address, with or without port'],
  no_etag: [400, 'What this route writes has no ETag: leave out If-Match and If-None-Match'],
  malformed_etag: [400, 'If-Match or If-None-Match is malformed: send * or entity tags in double quotes'],
  no_token: [401, 'The admin token is missing: send Authorization: Bearer TOKEN or X-Api-Key: TOKEN'],
  wrong_token: [401, 'The token is wrong: send one Authorization: Bearer TOKEN or X-Api-Key: TOKEN'],
  proxied: [403, 'The request came through a proxy: connect to this API directly (unset HTTP_PROXY)'],
  namespaces_off: [403, 'This sidecar takes no listeners of its parent process: set sandboxes.namespaces'],
  not_handed_over: [
    403,
    'The parent process handed over no such listener for this sandbox: hand over another',
  ],
  listener_rejected: [403, 'The listener that was handed over cannot serve this sandbox: open another'],
  no_route: [404, 'There is no such path: GET / lists all paths'],
  not_found: [404, 'There is no such sandbox: GET /v1/sandboxes lists all sandboxes'],
  method: [405, 'The path does not have this method: use one of those in Allow'],
  late: [408, 'The request did not arrive in time: send the whole request sooner'],
  exists: [409, 'There is already a sandbox with this id, token or address: choose another'],
  protected: [409, 'The config determines this: change the config'],
  stale: [412, 'Another revision is in force: read it with GET, then send its ETag as If-Match'],
  too_large: [413, 'The document is too large: send a smaller one'],
  content_type: [415, 'The document is not declared as UTF-8 JSON: send Content-Type: application/json'],
  content_encoding: [415, 'The document has a Content-Encoding: send it without one'],
  expectation: [417, 'Expect holds something other than 100-continue: remove it'],
  foreign_host: [421, 'Without the token, Host must be localhost, a loopback address or in admin.hosts'],
  too_many_wrong_tokens: [429, 'Too many wrong tokens: correct the token; the right one is always accepted'],
  too_many_readers: [429, 'Too many readers follow the records: end one of them'],
  too_many_writes: [429, 'Too many or too large writes to this sandbox: send fewer, and after Retry-After'],
  head_too_large: [431, 'The head of the request is too large: send fewer or shorter header fields'],
  client_gone: [499, 'The client left before its request was whole'],
  internal_error: [500, 'The sidecar has a bug: its log has the X-Request-Id of this response'],
  storage_failed: [500, 'The state could not be written: check the state directory'],
  busy: [503, 'Other writes are running: try again'],
  parser_failed: [503, 'The parser ended, so nothing was changed: send the document again, or a smaller one'],
  not_ready: [503, 'This sidecar is starting or ending: try again, or use another one'],
  records_blocked: [503, 'Records cannot be written, so nothing was changed: check the reader of the output'],
  version: [505, 'The HTTP version is neither 1.0 nor 1.1: use HTTP/1.1'],
  full: [507, 'A limit of the sidecar is reached: remove something, or raise the limit in the config'],
} as const;

export type AdminErrorCode = keyof typeof ERRORS;
export const adminErrorCodes: readonly ErrorCode[] = listErrors(ERRORS);

/** `detail` replaces the general text of the code; `waitMs` is when to try again. */
export function adminError(
  code: AdminErrorCode,
  given: {
    readonly detail?: string;
    readonly fields?: Readonly<Record<string, string>>;
    readonly waitMs?: number;
  } = {},
): AdminResponse {
  const [status, meaning] = ERRORS[code];
  const { detail = meaning, fields, waitMs } = given;
  const all = { ...fields, ...(waitMs === undefined ? {} : retryAfter(waitMs)) };
  return { ...errorResponse(status, code, detail, all), reason: code };
}

/** 422 with every issue at once; each has a `type` that programs may match. */
export function invalid(issues: readonly Issue[]): AdminResponse {
  return { ...jsonResponse(422, { detail: capIssues(issues) }), reason: 'invalid' };
}

/** Why the sidecar did not make a change. `loc` is where the document was in the request. */
export function problemResponse(problem: Problem, loc: Loc): AdminResponse {
  if (problem.kind === 'invalid') return invalid(prefixed(problem.issues, loc));
  const { kind, message: detail } = problem;
  return adminError(kind, { detail, ...(ERRORS[kind][0] === 503 ? { waitMs: 1000 } : {}) });
}
