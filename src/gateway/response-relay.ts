// The response leg: head and body of a target's response on their way to the client. Fields of one hop are removed, the body is
// sent as it arrives, and a body that was cut off stays cut off.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Target } from './target.ts';

/** Fields of one hop, and those by which a target would speak for the gateway (RFC 9110 §7.6.1, RFC 7838). */
const removed: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'alt-svc',
  // Which only a refusal of the gateway has.
  'x-sallyport-error',
]);

/** Name, value, name, value, … of the fields that the client gets. */
export function responseFields(response: IncomingMessage, target: Target | undefined): string[] {
  const fields = endToEndFields(response);
  if (target?.responseFields === undefined) return fields;
  return [...target.responseFields(fields, response.statusCode ?? 0)];
}

function endToEndFields({ rawHeaders, headers, statusCode }: IncomingMessage): string[] {
  const nominated = nominations(headers.connection);
  // RFC 9110 §8.6: a client that believed it would wait for a body.
  const hasNoLength = statusCode === 204;
  const fields: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const lower = name.toLowerCase();
    if (removed.has(lower) || nominated?.has(lower)) continue;
    if (!hasNoLength || lower !== 'content-length') fields.push(name, rawHeaders[i + 1] as string);
  }
  return fields;
}

/** A target must not have its own framing removed. */
const neverNominated: ReadonlySet<string> = new Set(['content-length', 'close', 'keep-alive']);

function nominations(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || neverNominated.has(connection)) return undefined;
  const names = connection.toLowerCase().split(',');
  return new Set(names.map((name) => name.trim()).filter((name) => !neverNominated.has(name)));
}

export type RelayEvents = {
  onBytes(count: number): void;
  /** The target ended before its response did. */
  onCut(): void;
};

/** False if this head cannot be sent on; nothing was sent then. */
export function sendHead(
  response: IncomingMessage,
  outgoing: ServerResponse,
  { isLast, target }: { readonly isLast: boolean; readonly target: Target | undefined },
): boolean {
  const { statusCode = 0, statusMessage = '' } = response;
  if (statusCode < 200 || statusCode > 599 || !isChunkedAlone(response)) return false;
  const fields = responseFields(response, target);
  if (isLast) fields.push('Connection', 'close');
  try {
    outgoing.writeHead(statusCode, statusMessage, fields);
    return true;
  } catch {
    return false;
  }
}

/** node:http removes chunks only, and would pass the content in any other coding without its name (RFC 9112 §6.1). */
function isChunkedAlone({ headers, httpVersionMinor }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  return coding === undefined || (httpVersionMinor === 1 && coding.toLowerCase() === 'chunked');
}

export function relayBody(response: IncomingMessage, outgoing: ServerResponse, events: RelayEvents): void {
  let hasBytes = false;
  response.on('data', (piece: Buffer) => {
    hasBytes = true;
    events.onBytes(piece.length);
    if (!outgoing.write(piece)) response.pause();
  });
  outgoing.on('drain', () => response.resume());
  response.on('end', () => {
    if (response.complete) outgoing.end();
  });
  response.on('close', () => {
    if (!response.complete) events.onCut();
  });
  response.on('error', () => undefined);
  // Bytes that came with the head leave with it. Without any the head leaves alone: an event stream may stay silent.
  process.nextTick(() => {
    if (!hasBytes && !response.readableEnded && !outgoing.writableEnded) outgoing.flushHeaders();
  });
}
