// The requests of the load: 64 heads of different lengths, paths and fields, as several client libraries send them. A proxy
// that remembers the last head gains nothing. Each head has an id of its own, which the response must repeat.
import { createHash } from 'node:crypto';

export const HEADS = 64;
/** What the client itself sends as Authorization. */
export const PLACEHOLDER = 'Bearer placeholder-of-the-agent';

const PATHS = [
  'models',
  'chat/completions',
  'repos/example/app/issues',
  'files',
  'v2/items',
  'search',
] as const;
const OPTIONAL = [
  ['Cookie', (hash: string) => `session=${hash}; theme=dark`],
  ['X-Client-Version', (hash: string) => `1.${Number.parseInt(hash.slice(0, 2), 16)}.0`],
  ['Idempotency-Key', (hash: string) => `${hash.slice(0, 8)}-${hash.slice(8, 12)}-${hash.slice(12, 16)}`],
  ['Referer', (hash: string) => `https://app.example.com/p/${hash.slice(0, 12)}`],
] as const;

/** Below /v1/ the origin requires the credential, elsewhere the placeholder. `extra` are lines of one subject. */
export function requestHeads(
  authority: string,
  folder: '/v0' | '/v1',
  extra: readonly string[] = [],
): readonly string[] {
  return Array.from({ length: HEADS }, (_, i) => {
    const hash = createHash('sha256').update(`head ${i}`).digest('hex');
    // Every combination of the optional fields occurs.
    const optional = OPTIONAL.filter((_field, bit) => ((i >> bit) & 1) === 1);
    return [
      `GET ${folder}/${PATHS[i % PATHS.length]}/${hash.slice(0, 4 + (i % 20))}?limit=20&page=${i} HTTP/1.1`,
      `Host: ${authority}`,
      'User-Agent: bench/1.0',
      'Accept: application/json',
      'Accept-Encoding: identity',
      'Content-Type: application/json',
      `X-Request-Id: ${i}-${hash.slice(20, 32)}`,
      `Traceparent: 00-${hash.slice(0, 32)}-${hash.slice(32, 48)}-01`,
      ...optional.map(([name, value]) => `${name}: ${value(hash)}`),
      `Authorization: ${PLACEHOLDER}`,
      ...extra,
      '\r\n',
    ].join('\r\n');
  });
}

/** The id of a head, if it has one. */
export function idOf(head: string): string | undefined {
  return /^x-request-id:[ \t]*(.*?)[ \t]*\r?$/im.exec(head)?.[1];
}
