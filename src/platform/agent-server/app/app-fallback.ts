// Requests for paths that no route of ours has, for the application of the deployment: relayed to a worker, with both bodies as
// streams. They pass the authentication where the configuration asks for it.
import { DomainError } from '../../../base/domain-error.ts';
import type { Access } from '../../api/access.ts';
import { signalOf } from '../../api/api-request.ts';
import type { Fallback } from '../../api/contract/fallback.ts';
import type { GraphWorkers } from '../workers/graph-workers.ts';
import { WorkerError } from '../workers/worker-error.ts';
import { requestFields, responseFields } from './relayed-fields.ts';

/** Of a body of a request, which the application reads as it likes. */
const BODY_TIMES = { idleMs: 60_000, totalMs: 3_600_000 };
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** `access`: that of the API where custom routes are authenticated, else that of everybody. */
export function createAppFallback(workers: Pick<GraphWorkers, 'request'>, access: Access): Fallback {
  return {
    access,
    path: '(application)',
    async serve(request) {
      const { head, body } = request;
      const { method, target, hasBody } = head;
      const url = `http://${head.host ?? 'localhost'}${target}`;
      const sent = { method, url, headers: requestFields(head), hasBody };
      const stream = hasBody ? body.stream(BODY_TIMES) : undefined;
      const response = await workers
        .request(sent, stream, { signal: signalOf(request) })
        .catch(toResponseError);
      const { status, headers } = response;
      const sentFields = responseFields(headers);
      if (method !== 'HEAD' && !NO_BODY.has(status)) return { status, ...sentFields, body: response.body };
      // Its end alone is to come.
      for await (const _ of response.body);
      return { status, ...sentFields };
    },
  };
}

/** What the application throws is an error of the server to its clients; without a worker it can be tried again. */
function toResponseError(error: unknown): never {
  if (error instanceof WorkerError && error.isRetryable)
    throw new DomainError('unavailable', 'The application does not respond now: try again', 1000);
  throw error;
}
