// Asks the handlers of the deployment, which run in a worker. What they throw becomes the response that they chose; where they
// give no result the caller is not let in.
import type { WorkerCalls } from '../../../agent-worker/protocol/calls.ts';
import { DomainError, GivenRefusal } from '../../../base/domain-error.ts';
import type { Log } from '../../../base/log.ts';
import type { GraphWorkers } from '../workers/graph-workers.ts';
import { WorkerError } from '../workers/worker-error.ts';

type HandlerName = 'auth.authenticate' | 'auth.authorize';

export type HandlerCalls = {
  /** `subject` names the handler for the log and for messages: `authenticate`, `threads:read`. */
  ask<M extends HandlerName>(
    method: M,
    params: WorkerCalls[M]['params'],
    options: { readonly subject: string; readonly signal?: AbortSignal },
  ): Promise<WorkerCalls[M]['result']>;
};

export type HandlerCallOptions = {
  readonly workers: Pick<GraphWorkers, 'call'>;
  readonly log: Log;
  /** Then the caller is not let in. */
  readonly timeoutMs?: number;
};

const TIMEOUT_MS = 10_000;
const RETRY_MS = 1_000;

export function createHandlerCalls({
  workers,
  log,
  timeoutMs = TIMEOUT_MS,
}: HandlerCallOptions): HandlerCalls {
  return {
    async ask(method, params, { subject, signal }) {
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(), timeoutMs);
      try {
        const until = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
        return await workers.call(method, params, { signal: until });
      } catch (error) {
        signal?.throwIfAborted();
        if (late.signal.aborted)
          throw new DomainError('unavailable', `The handler ${subject} did not respond in time`, RETRY_MS);
        throw toRefusal(error, subject, log);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** What a handler throws may quote what it was shown: the log gets the class alone. */
function toRefusal(error: unknown, subject: string, log: Log): unknown {
  if (!(error instanceof WorkerError)) return error;
  const { thrown } = error;
  if (thrown?.status !== undefined)
    return new GivenRefusal(thrown.status, thrown.message, toFields(thrown.headers ?? {}));
  if (error.isRetryable || error.kind === 'cancelled')
    return new DomainError('unavailable', `The handler ${subject} is not available: try again`, RETRY_MS);
  const reason = thrown === undefined ? error.message : thrown.error;
  return reportHandler(log, subject, reason, thrown === undefined ? error.message : undefined);
}

/** A handler that cannot be understood. `detail` has nothing of the request. */
export function reportHandler(log: Log, subject: string, reason: string, detail?: string): GivenRefusal {
  log.error({ handler: subject, reason }, 'a handler of the deployment has failed');
  return new GivenRefusal(500, detail ?? `The handler ${subject} has failed`);
}

const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/;
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]{0,4096}$/;
/** What a refusal is made of. A cookie, for example, is never set by one. */
const ALLOWED = /^(?:www-authenticate|retry-after|location|x-.*)$/;
/** Those that every response has, and those that proxies obey. */
const OWN = /^x-(?:content-type-options|request-id|accel-.*|sendfile.*)$/;
const MAX_FIELDS = 32;

/** The header fields that a handler may give to a response. */
function toFields(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const pairs = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const allowed = pairs.filter(
    ([name, value]) =>
      FIELD_NAME.test(name) && FIELD_VALUE.test(value) && ALLOWED.test(name) && !OWN.test(name),
  );
  return Object.fromEntries(allowed.slice(0, MAX_FIELDS));
}
