// Every error of the platform's API: its code, its status and what happened. The only file that maps an error to a status.
// No response repeats what was sent.
import { DomainError, type DomainErrorKind, GivenRefusal, InvalidInput } from '../../base/domain-error.ts';
import { BodyError, type BodyErrorKind } from '../../base/http/body-error.ts';
import {
  type ErrorCode,
  errorResponse,
  type HttpResponse,
  listErrors,
  retryAfter,
} from '../../base/http/http-response.ts';
import { RequestError, type RequestErrorKind } from '../../base/http/request-body.ts';
import { capIssues } from '../../base/schema.ts';
import { type ApiError, problemErrors } from './contract/error-formats.ts';

// Codes do not change.
const ERRORS = {
  malformed: [400, 'The request is not HTTP/1.1, or its body is framed wrongly'],
  client_gone: [400, 'The request body was cut off'],
  tiny_chunks: [
    400,
    'The body has thousands of chunks of a few bytes: send larger chunks, or Content-Length',
  ],
  framing: [400, 'Frame the body by Content-Length, or by Transfer-Encoding: chunked alone'],
  bad_host: [400, 'Exactly one valid Host header is required'],
  bad_target: [400, 'Invalid path: dot segments, backslashes and non-ASCII bytes are not allowed'],
  proxy_request: [400, 'This is not a proxy: send the path alone'],
  unexpected_body: [400, 'GET and HEAD must have no body'],
  not_decodable: [400, 'The body is not what Content-Encoding announces'],
  malformed_multipart: [400, 'The body is not valid multipart/form-data'],
  unusable: [400, 'The request is well-formed and cannot be carried out'],
  unauthenticated: [401, 'A valid key is required'],
  forbidden: [403, 'The key does not have the permission'],
  not_found: [404, 'There is no such resource'],
  no_route: [404, 'There is no such path. See /openapi.json'],
  method: [405, 'Method not allowed. See the Allow header'],
  not_ready: [400, 'The state of the resource does not allow this yet'],
  late: [408, 'The request did not arrive in time'],
  timeout: [408, 'It did not happen in time'],
  conflict: [409, 'The state of the resource does not allow this'],
  too_large: [413, 'The request body is too large'],
  start_failed: [422, 'It could not be started'],
  content_type: [415, 'Send JSON in UTF-8, with Content-Type: application/json'],
  content_coding: [415, 'The body has a Content-Encoding that is not accepted: see Accept-Encoding'],
  expectation: [417, 'Expect must be 100-continue'],
  too_many: [429, 'Too many requests: try again later'],
  quota_exceeded: [429, 'A quota of the workspace is used up'],
  head_too_large: [431, 'The head of the request is too large: send fewer or shorter header fields'],
  internal_error: [500, 'Internal server error. Quote X-Request-Id when you report it'],
  not_supported: [501, 'This platform does not support it'],
  unavailable: [503, 'Temporarily unavailable: try again later'],
  version: [505, 'Use HTTP/1.1'],
  storage_full: [507, 'No more can be stored: delete something'],
} as const satisfies Readonly<
  Record<DomainErrorKind | RequestErrorKind | BodyErrorKind, readonly [status: number, meaning: string]>
> &
  Readonly<Record<string, readonly [status: number, meaning: string]>>;

export type PlatformErrorCode = keyof typeof ERRORS;
export const platformErrorCodes: readonly ErrorCode[] = listErrors(ERRORS);

/** `detail` replaces the general text of the code. */
export function platformError(
  code: PlatformErrorCode,
  detail?: string,
  fields?: Readonly<Record<string, string>>,
): HttpResponse {
  const [status, meaning] = ERRORS[code];
  return errorResponse(status, code, detail ?? meaning, fields);
}

/** What a handler threw; undefined for a bug. */
export function toApiError(error: unknown): ApiError | undefined {
  if (error instanceof InvalidInput)
    return {
      status: 422,
      code: 'invalid_input',
      detail: 'The request is invalid',
      issues: capIssues(error.issues),
    };
  if (error instanceof RequestError) return apiError(error.kind);
  if (error instanceof BodyError)
    return { ...apiError(error.kind), detail: error.message, fields: error.fields };
  if (error instanceof GivenRefusal)
    return { status: error.status, code: codeOf(error.status), detail: error.message, fields: error.fields };
  if (!(error instanceof DomainError)) return undefined;
  const fields = {
    ...(error.kind === 'unauthenticated' ? { 'WWW-Authenticate': 'Bearer' } : {}),
    ...(error.retryMs === undefined ? {} : retryAfter(error.retryMs)),
  };
  return { ...apiError(error.kind), detail: error.message, fields };
}

/** Of a status that we did not choose: the most general one. */
function codeOf(status: number): PlatformErrorCode {
  const known = {
    401: 'unauthenticated',
    403: 'forbidden',
    404: 'not_found',
    409: 'conflict',
    429: 'too_many',
  } as const;
  const general = status < 500 ? 'unusable' : status === 503 ? 'unavailable' : 'internal_error';
  return known[status as keyof typeof known] ?? general;
}

/** An error with the general text of its code. */
export function apiError(code: PlatformErrorCode): ApiError {
  const [status, detail] = ERRORS[code];
  return { status, code, detail };
}

/** The response to what a handler threw, in our own format; undefined for a bug. */
export function toErrorResponse(error: unknown): HttpResponse | undefined {
  const found = toApiError(error);
  return found && problemErrors.write(found, '');
}

/** An error in a stream of events, whose status was sent before. */
export type StreamError = { readonly error: string; readonly message: string };

/** What a handler or a producer threw, for a stream; a bug without its text. */
export function toStreamError(error: unknown): StreamError {
  if (error instanceof DomainError) return { error: error.kind, message: error.message };
  if (error instanceof GivenRefusal) return { error: codeOf(error.status), message: error.message };
  return { error: 'internal_error', message: ERRORS.internal_error[1] };
}
