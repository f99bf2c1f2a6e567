// The errors of the box host as responses to the platform.
import { errorResponse, jsonResponse, type HttpResponse } from '../../base/http/http-response.ts';
import { RequestError } from '../../base/http/request-body.ts';
import { type Log, describeBug } from '../../base/log.ts';
import { BoxError, type BoxErrorKind } from '../box-error.ts';

const STATUS: Readonly<Record<BoxErrorKind, number>> = {
  invalid_policy: 422,
  invalid_snapshot: 422,
  no_capacity: 507,
  not_supported: 501,
  unavailable: 503,
  failed: 500,
  not_found: 404,
  port_refused: 403,
  not_listening: 502,
  agent_lost: 502,
};

export function toErrorResponse(error: unknown, log: Log): HttpResponse {
  if (error instanceof RequestError)
    return errorResponse(400, error.kind, 'The body of the request is not usable');
  if (!(error instanceof BoxError)) {
    log.error(describeBug(error), 'a request of the platform failed');
    return errorResponse(500, 'failed', 'The box host has a bug: see its log');
  }
  const { kind, message, issues } = error;
  return jsonResponse(STATUS[kind], { code: kind, detail: message, ...(issues.length > 0 && { issues }) });
}
