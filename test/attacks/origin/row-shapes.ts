// The shapes of most rows of stage `origin`: one response to a plain GET, relayed unchanged or refused as a whole.
import type { Bytes, OriginExpectation, OriginRow, OriginScript, OriginStep } from './origin-script.ts';

type More = { readonly script?: Partial<OriginScript>; readonly expect?: Partial<OriginExpectation> };

/** A head and a body of a fixed length. */
export function response(fields: readonly string[], body = 'ok', status = '200 OK'): string {
  return [`HTTP/1.1 ${status}`, ...fields, `Content-Length: ${body.length}`, '', body].join('\r\n');
}

/** Relayed completely; by default unchanged, and both connections are reused. */
export function relayed(id: OriginRow['id'], sent: Bytes, client: Bytes = sent, more: More = {}): OriginRow {
  return {
    id,
    script: { response: [{ send: sent }], ...more.script },
    expect: { client, host: 'reused', record: { outcome: 'injected' }, ...more.expect },
  };
}

/** Refused with 502 before a byte of it was relayed; `cause` is from the record. */
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

/** Truncated: the head was relayed, and the client detects that the body is incomplete. */
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
