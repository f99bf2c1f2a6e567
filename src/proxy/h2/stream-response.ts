// Response heads and refusals on a client's stream, with the same fields and body as for HTTP/1.1 clients.
import type { ServerHttp2Stream, ServerStreamResponseOptions } from 'node:http2';
import type { HeaderList } from '../upstream/h2-session.ts';
import { type Refusal, refusalParts } from '../refusal.ts';

type ResponseOptions = Readonly<ServerStreamResponseOptions & { sendDate: boolean }>;

// An upstream response without a Date stays without one.
const responseOptions = Object.freeze({
  whole: Object.freeze({ endStream: true, sendDate: false }),
  'with body': Object.freeze({ endStream: false, sendDate: false }),
  'with trailers': Object.freeze({ endStream: false, waitForTrailers: true, sendDate: false }),
}) satisfies Readonly<Record<string, ResponseOptions>>;

/** Sends the final head, and says what follows it. After a body `with trailers` node:http2 asks for them. */
export function sendHead(
  stream: ServerHttp2Stream,
  status: number,
  fields: HeaderList,
  form: keyof typeof responseOptions,
): void {
  stream.respond([':status', String(status), ...fields], responseOptions[form]);
}

/**
 * Resets a stream during its response. `close` ends the stream before it resets it; during a write node:http2 may then ask
 * a destroyed stream for its trailers, which aborts the process (26.10). So the reset bypasses `close`.
 */
export function resetStream(stream: ServerHttp2Stream, code: number): void {
  stream._final = (done) => done();
  stream.close(code);
}

/** What the form of a refusal depends on. */
export type RefusedRequest = {
  readonly method: string;
  /** The fields as received, with pseudo-fields. */
  readonly fields: HeaderList;
};

/** Responds and ends our side; returns the number of body bytes sent. */
export function sendRefusal(stream: ServerHttp2Stream, refusal: Refusal, request: RefusedRequest): number {
  if (stream.destroyed || stream.closed) return 0;
  if (isGrpc(request.fields)) {
    sendHead(stream, 200, grpcFields(refusal), 'whole');
    return 0;
  }
  const { fields, body } = refusalParts(refusal);
  const endStream = request.method === 'HEAD';
  const list = fields.flatMap(([name, value]) => [name.toLowerCase(), value]);
  sendHead(stream, refusal.status, list, endStream ? 'whole' : 'with body');
  if (endStream) return 0;
  stream.end(body);
  return body.length;
}

function isGrpc(fields: HeaderList): boolean {
  const at = fields.findIndex((text, i) => i % 2 === 0 && text === 'content-type');
  return at !== -1 && GRPC.test(fields[at + 1] ?? '');
}

/**
 * A gRPC caller reads only the status of a response that is not gRPC. So it gets trailers-only gRPC, with the status that it
 * would derive itself (gRPC over HTTP/2, "HTTP to gRPC Status Code Mapping").
 */
function grpcFields({ refused, status, message, hint }: Refusal): HeaderList {
  const text = hint ? `${message}; ${hint}` : message;
  return [
    ...['content-type', 'application/grpc', 'grpc-status', String(grpcStatuses[status] ?? UNKNOWN)],
    ...['grpc-message', text.replaceAll('%', '%25'), 'x-sallyport-error', refused],
  ];
}

/** Not gRPC-Web, which has another format. */
const GRPC = /^application\/grpc(?:$|[+;])/;
const UNKNOWN = 2;
const [INTERNAL, UNAVAILABLE] = [13, 14];
const grpcStatuses: Readonly<Record<number, number>> = {
  400: INTERNAL,
  403: 7, // PERMISSION_DENIED
  404: 12, // UNIMPLEMENTED
  405: 12,
  431: 8, // RESOURCE_EXHAUSTED
  500: INTERNAL,
  502: UNAVAILABLE,
  503: UNAVAILABLE,
  504: UNAVAILABLE,
};
