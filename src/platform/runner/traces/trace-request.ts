// Which requests of a deployment are sent on to the platform: those by which its tracer sends runs, and nothing that resembles them. Pure.
import type { RequestHead } from '../../../base/http/request-head.ts';

export type TraceRequest = {
  readonly method: string;
  readonly path: string;
  /** All that is sent of its fields. */
  readonly fields: Readonly<Record<string, string>>;
};

export type NoTraceRequest = { readonly status: 400 | 404 | 417; readonly detail: string };

const UUID = /^\/runs\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const WRITES: ReadonlySet<string> = new Set(['/runs', '/runs/batch', '/runs/multipart']);
/** Of a field: what media types, boundaries and codings consist of. */
const VALUE = /^[\x20-\x7e]{1,256}$/;

export function decideTraceRequest(head: RequestHead): TraceRequest | NoTraceRequest {
  const { method, target: path } = head;
  if (head.version !== '1.1' || !head.isFramedPlainly)
    return { status: 400, detail: 'The request cannot be read: send HTTP/1.1 with one Content-Length' };
  if (head.hasUnknownExpectation) return { status: 417, detail: 'Expect must be 100-continue' };
  const isKnown =
    (method === 'GET' && path === '/info') ||
    (method === 'POST' && WRITES.has(path)) ||
    (method === 'PATCH' && UUID.test(path));
  if (!isKnown) return { status: 404, detail: 'Only runs are sent here: POST and PATCH of /runs' };
  if (method === 'GET' && head.hasBody) return { status: 400, detail: 'GET must have no body' };
  const fields: Record<string, string> = {};
  for (const name of ['content-type', 'content-encoding']) {
    const [value, ...more] = head.values(name);
    if (value === undefined) continue;
    if (more.length > 0 || !VALUE.test(value))
      return { status: 400, detail: `${name} must be one short value` };
    fields[name] = value;
  }
  if (head.hasBody && head.contentLength > 0) fields['content-length'] = String(head.contentLength);
  return { method, path, fields };
}
