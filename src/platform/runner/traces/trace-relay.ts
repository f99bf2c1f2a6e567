// Where the tracer of a deployment sends its runs: a port of its own loopback, behind which this process sends them on to the platform. Who
// sends is known by the listener. Its code may send any bytes at any pace: it gets a few requests at a time, and nothing but runs.
import { describeBug, type Log } from '../../../base/log.ts';
import { errorResponse, type HttpResponse, retryAfter } from '../../../base/http/http-response.ts';
import { type Exchange, HttpServer } from '../../../base/http/http-server.ts';
import { RequestError } from '../../../base/http/request-body.ts';
import type { OpenService, WorkloadService } from '../../../workload/workload.ts';
import { decideTraceRequest } from './trace-request.ts';
import type { Sending, TraceResponse } from './trace-sender.ts';

export type TraceRelayOptions = {
  /** Rejects when the platform does not respond. */
  send(sending: Sending): Promise<TraceResponse>;
  readonly log: Log;
};

/** Of the loopback of the deployment. */
const TRACES_PORT = 3126;

/** Of one agent server. */
const MAX_RUNNING = 8;
const MAX_CONNECTIONS = 64;
const LIMITS = { headBytes: 16 * 1024, headMs: 10_000, requestMs: 60_000, keepAliveMs: 30_000 };
const BODY_TIMES = { idleMs: 30_000, totalMs: 110_000 };
const RETRY_MS = 5_000;

export function createTraceService(options: TraceRelayOptions): WorkloadService {
  return { port: TRACES_PORT, listen: (handle) => listen(options, handle) };
}

async function listen({ send, log }: TraceRelayOptions, handle: object): Promise<OpenService> {
  let connections = 0;
  const server = new HttpServer({
    ...{ limits: LIMITS, log },
    handle: (exchange) => relay(exchange, server, { send, log }),
    reject: () => errorResponse(400, 'malformed', 'The request cannot be read'),
    accept(socket) {
      if (connections === MAX_CONNECTIONS) return void socket.destroy();
      connections += 1;
      return socket.once('close', () => (connections -= 1));
    },
  });
  const { listener } = server;
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject).listen(handle, () => resolve(void listener.off('error', reject)));
  });
  return { close: () => server.close(0, 'end') };
}

async function relay(
  exchange: Exchange,
  server: Pick<HttpServer, 'running'>,
  { send, log }: TraceRelayOptions,
): Promise<HttpResponse> {
  const decided = decideTraceRequest(exchange.head);
  if ('detail' in decided) return { ...errorOf(decided.status, decided.detail), isLast: true };
  if (server.running > MAX_RUNNING)
    return errorResponse(429, 'too_many', 'Too many runs are being sent', retryAfter(1_000));
  const body = exchange.head.hasBody ? exchange.body.stream(BODY_TIMES) : undefined;
  try {
    return await send({ ...decided, body, signal: exchange.left() });
  } catch (error) {
    if (error instanceof RequestError) return errorOf(error.kind === 'late' ? 408 : 400, 'It did not arrive');
    log.debug(describeBug(error), 'runs of a deployment were not sent');
    return errorResponse(503, 'unavailable', 'The platform does not respond', retryAfter(RETRY_MS));
  }
}

function errorOf(status: number, detail: string): HttpResponse {
  return errorResponse(status, 'not_sent', detail);
}
