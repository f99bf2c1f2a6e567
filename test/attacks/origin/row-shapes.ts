// The few shapes that most rows of stage `origin` have: one answer to a plain GET, passed on as it is or refused whole.
import type { Bytes, OriginExpectation, OriginRow, OriginScript, OriginStep } from './origin-script.ts';

type More = { readonly script?: Partial<OriginScript>; readonly expect?: Partial<OriginExpectation> };

/** A head and a body of a fixed length. */
export function response(fields: readonly string[], body = 'ok', status = '200 OK'): string {
  return [`HTTP/1.1 ${status}`, ...fields, `Content-Length: ${body.length}`, '', body].join('\r\n');
}

/** Passed on whole; by default as it came, on connections that both serve again. */
export function relayed(id: OriginRow['id'], sent: Bytes, client: Bytes = sent, more: More = {}): OriginRow {
  return {
    id,
    script: { response: [{ send: sent }], ...more.script },
    expect: { client, host: 'reused', record: { outcome: 'injected' }, ...more.expect },
  };
}

/** Refused with 502 before a byte of it was passed on; `cause` is what the record says. */
export function malformed(id: OriginRow['id'], sent: Bytes, cause: string, more: More = {}): OriginRow {
  return {
    id,
    script: { response: [{ send: sent }], ...more.script },
    expect: {
      client: { refused: 'upstream_malformed' },
      record: { outcome: 'failed', status: 502, reason: 'upstream_malformed', cause },
      ...more.expect,
    },
  };
}

/** Cut within: the head was passed on, and the client sees that the body is not whole. */
export function cutWithin(
  id: OriginRow['id'],
  steps: readonly OriginStep[],
  within: Bytes,
  record: OriginExpectation['record'],
  more: More = {},
): OriginRow {
  return {
    id,
    script: { response: steps, ...more.script },
    expect: { client: { within }, end: 'cut', record: { outcome: 'failed', ...record }, ...more.expect },
  };
}
