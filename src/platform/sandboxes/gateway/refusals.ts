// The gateway's own responses as clients of sandboxes read them: `{detail: {error, message}}`.
import { refusalOfError } from '../../../gateway/domain-refusal.ts';
import { type Refusal, type RefusalCode, refuse } from '../../../gateway/refusal.ts';
import { RuntimeError } from '../../runtime/contract.ts';

export function writeRefusal({ code, name = NAMES[code], message }: Refusal): object {
  return { detail: { error: name ?? toName(code), message } };
}

/** What was thrown while a request was decided; a bug is thrown again. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof Refused) return error.refusal;
  return refusalOfError(error);
}

/** Why there is no connection into a box. */
export function refuseConnection(error: unknown): Refusal {
  if (!(error instanceof RuntimeError)) throw error;
  const { kind, message } = error;
  if (kind === 'not_supported') return refuse('not_supported', { message, name: 'NotSupported' });
  // Its row says that it runs: the reconciler is on its way.
  const text = kind === 'failed' ? STARTING : message;
  return refuse('target_unavailable', { message: text, name: 'ServiceUnavailable', retryAfterMs: RETRY_MS });
}

const STARTING = 'The sandbox is being started again: send the request again';

/** What no DomainError can say. */
export class Refused extends Error {
  override readonly name: string = 'Refused';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/** As on the API where it has the same error, and otherwise by the names that clients know. */
const NAMES: Readonly<Partial<Record<RefusalCode, string>>> = {
  target_not_found: 'NotFound',
  method_refused: 'MethodNotAllowed',
  target_unreachable: 'ConnectionError',
  target_closed: 'ConnectionError',
  target_response_invalid: 'ConnectionError',
  target_timeout: 'Timeout',
  decision_timeout: 'Timeout',
  ...{ too_many_connections: 'ServiceUnavailable', draining: 'ServiceUnavailable' },
  ...{ overloaded: 'ServiceUnavailable', target_unavailable: 'ServiceUnavailable' },
};

const RETRY_MS = 1_000;

function toName(code: string): string {
  return code.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}
