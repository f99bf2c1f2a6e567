// What a request to the data plane gets when it fails: `{detail: {error, message}}` for what clients map to errors of their own,
// and a list of issues for invalid input.
import { BodyError } from '../../base/http/body-error.ts';
import { type HttpResponse, jsonResponse, retryAfter } from '../../base/http/http-response.ts';
import { RequestError, type RequestErrorKind } from '../../base/http/request-body.ts';
import { InvalidInput } from '../../base/domain-error.ts';
import { capIssues } from '../../base/schema.ts';
import { AgentError } from '../agents/agent-error.ts';

/** What failed in the box, by the names that clients know. */
export type Operation = 'ReadError' | 'WriteError' | 'CommandError' | 'ConnectionError';

/** A refusal that a route decides on. */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function refuse(
  status: number,
  error: string,
  message: string,
  fields?: Readonly<Record<string, string>>,
): HttpResponse {
  return jsonResponse(status, { detail: { error, message } }, fields);
}

/** The response to an error that is expected; undefined for a bug. */
export function errorToResponse(error: unknown, operation: Operation): HttpResponse | undefined {
  if (error instanceof Refusal) return refuse(error.status, error.code, error.message);
  if (error instanceof InvalidInput) return jsonResponse(422, { detail: capIssues(error.issues) });
  if (error instanceof AgentError) return fromAgent(error, operation);
  if (error instanceof BodyError)
    return refuse(BODY_STATUS[error.kind], 'InvalidRequest', error.message, error.fields);
  if (error instanceof RequestError) return requestErrorToResponse(error.kind);
  return undefined;
}

export function requestErrorToResponse(kind: RequestErrorKind): HttpResponse {
  const [status, message] = REQUEST_ERRORS[kind];
  return refuse(status, 'InvalidRequest', message);
}

const BODY_STATUS: Readonly<Record<BodyError['kind'], number>> = {
  content_type: 415,
  content_coding: 415,
  not_decodable: 400,
  malformed_multipart: 400,
  too_large: 413,
};

const REQUEST_ERRORS: Readonly<Record<RequestErrorKind, readonly [status: number, message: string]>> = {
  too_large: [413, 'The body is too large'],
  late: [408, 'The request did not arrive in time'],
  malformed: [400, 'The request is malformed'],
  tiny_chunks: [400, 'The chunks of the body are too small'],
  head_too_large: [431, 'The header of the request is too large'],
  content_type: [415, 'The type of the body is not supported'],
  client_gone: [400, 'The client has left'],
};

function fromAgent(error: AgentError, operation: Operation): HttpResponse {
  const { kind, message, code = '' } = error;
  if (kind === 'failed') {
    const [status, name = operation] = FAILURES.get(code) ?? [502];
    return refuse(status, name, message);
  }
  if (kind === 'busy') return refuse(429, 'TooManyRequests', message, retryAfter(1000));
  if (kind === 'stopped' || kind === 'unavailable')
    return refuse(503, 'ServiceUnavailable', message, retryAfter(1000));
  return refuse(502, kind === 'cancelled' ? operation : 'ConnectionError', message);
}

/** 400: the request cannot succeed as it is. 502 is everything else. */
type Failed = readonly [status: number, error?: string];
const FAILURES: ReadonlyMap<string, Failed> = new Map<string, Failed>([
  ['ENOENT', [404, 'FileNotFound']],
  ['ENOTDIR', [404, 'FileNotFound']],
  ['EACCES', [403, 'PermissionDenied']],
  ['EPERM', [403, 'PermissionDenied']],
  ['EROFS', [403, 'PermissionDenied']],
  ['PORT_REFUSED', [403, 'PermissionDenied']],
  ['ENOSPC', [507]],
  ['EDQUOT', [507]],
  ...[
    'EISDIR',
    'NOT_A_FILE',
    'NOT_A_DIRECTORY',
    'ENAMETOOLONG',
    'ELOOP',
    'E2BIG',
    'EINVAL',
    'ERR_INVALID_ARG_VALUE',
    'CWD_MISSING',
    'SHELL_MISSING',
  ].map((code): [string, Failed] => [code, [400]]),
]);
