// Errors that the domain throws on purpose, as refusals of the gateway: with the names that clients know.
import { DomainError, type DomainErrorKind, InvalidInput } from '../base/domain-error.ts';
import { type Refusal, type RefusalCode, refuse } from './refusal.ts';

/** What was thrown while a request was decided; a bug is thrown again. */
export function refusalOfError(error: unknown): Refusal {
  if (error instanceof InvalidInput) {
    const message = error.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
    return refuse('invalid_input', { message, name: 'ValidationError' });
  }
  if (!(error instanceof DomainError)) throw error;
  const { kind, message, retryMs } = error;
  const [code, name] = KINDS[kind];
  return refuse(code, {
    ...{ message, name },
    ...(retryMs === undefined ? {} : { retryAfterMs: retryMs }),
    ...(kind === 'unauthenticated' ? { challenge: 'Bearer' } : {}),
  });
}

const KINDS: Readonly<Record<DomainErrorKind, readonly [code: RefusalCode, name: string]>> = {
  unauthenticated: ['unauthenticated', 'Unauthenticated'],
  forbidden: ['forbidden', 'Forbidden'],
  not_found: ['target_not_found', 'NotFound'],
  conflict: ['target_not_ready', 'NotReady'],
  unusable: ['target_not_ready', 'NotReady'],
  not_ready: ['target_not_ready', 'NotReady'],
  timeout: ['target_unavailable', 'ServiceUnavailable'],
  start_failed: ['target_not_ready', 'NotReady'],
  too_many: ['too_many_requests', 'TooMany'],
  quota_exceeded: ['too_many_requests', 'QuotaExceeded'],
  storage_full: ['too_many_requests', 'QuotaExceeded'],
  not_supported: ['not_supported', 'NotSupported'],
  unavailable: ['target_unavailable', 'ServiceUnavailable'],
};
