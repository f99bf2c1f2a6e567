// Whether the head of a request can be answered at all: whatever two readers could take differently is refused before
// anybody acts on it. It knows no route. Pure.
import { type Reply, refusal } from './problem.ts';

export type RawHead = {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersion?: string | undefined;
  readonly rawHeaders: readonly string[];
};

/** The refusal of a head that is none of ours; undefined for one that may pass. */
export function judgeHead({
  method = '',
  url = '',
  httpVersion = '',
  rawHeaders,
}: RawHead): Reply | undefined {
  const values = (name: string): readonly string[] => valuesOf(rawHeaders, name);
  const codings = values('transfer-encoding');
  const isChunked = codings.length > 0;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refusal(505, 'Use HTTP/1.1');
  if (!url.startsWith('/')) return refusal(400, 'This is not a proxy: send the path alone');
  if (!PLAIN_TARGET.test(url) || DOT_SEGMENT.test(url))
    return refusal(
      400,
      'Write the path as it is, without dot segments, backslashes and bytes that are no text',
    );
  const hosts = values('host');
  if (
    hosts.length > 1 ||
    (hosts.length === 0 && httpVersion === '1.1') ||
    !hosts.every((host) => HOST.test(host))
  )
    return refusal(400, 'Send one Host');
  if (isChunked && (codings.length > 1 || codings[0]?.toLowerCase() !== 'chunked' || httpVersion === '1.0'))
    return refusal(400, 'Frame the body by Content-Length, or by Transfer-Encoding: chunked alone');
  if (isChunked && values('content-length').length > 0)
    return refusal(400, 'Frame the body by Content-Length or by Transfer-Encoding, not by both');
  if (UNSPOKEN.has(method)) return refusal(405, 'This method is not answered here');
  if ((method === 'GET' || method === 'HEAD') && hasBody(rawHeaders))
    return refusal(400, `Send no body with ${method}`);
  return undefined;
}

export function hasBody(rawHeaders: readonly string[]): boolean {
  return (
    valuesOf(rawHeaders, 'transfer-encoding').length > 0 ||
    valuesOf(rawHeaders, 'content-length').some((length) => Number(length) > 0)
  );
}

/** Every value of the field, in order; `name` in lower case. */
export function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  const found: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.toLowerCase() === name) found.push(String(rawHeaders[at + 1]).trim());
  return found;
}

// A fragment is the client's own affair and never sent; a backslash is a slash to some.
const PLAIN_TARGET = /^\/[!"$-[\]-~]*$/;
const DOT_SEGMENT = /^[^?]*\/(?:\.|%2e){1,2}(?:[/?]|$)/i;
const HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;
/** A web request cannot have them. */
const UNSPOKEN: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);
