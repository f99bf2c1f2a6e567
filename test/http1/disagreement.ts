// Where our reading of a connection and node's part, and the reasons for which they may. Ours must be the
// stricter one; the few reasons for which it is not say what makes that safe.
import { METHODS } from 'node:http';
import type { HeadErrorCode } from '../../src/http1/head-error.ts';
import type { Message, Reading } from './node-oracle.ts';

export type Disagreement = {
  /** `stricter`: we refuse what node takes. `laxer`: the reverse. `differs`: both take it, as different things. */
  readonly kind: 'stricter' | 'laxer' | 'differs';
  /** Our error, node's error, or what differs. */
  readonly on: string;
  readonly ours: Message | undefined;
};

type Reason = {
  readonly on: string;
  readonly why: string;
  /** What the bytes, or our own reading of them, must show for the reason to hold. */
  readonly holds: (wire: string, ours: Message | undefined) => boolean;
};

function stricter(on: HeadErrorCode, sign: RegExp, why: string): Reason {
  return { on, why, holds: (wire) => sign.test(wire) };
}

export const stricterReasons: readonly Reason[] = [
  stricter('bare_cr', /\r(?!\n)/, 'node skips stray CRs before a request'),
  stricter('bare_lf', /(?<!\r)\n/, 'node skips stray LFs before a request and takes LF after HTTP/0.9'),
  stricter('empty_line', /\r\n\r\n/, 'node skips any number of empty lines before a request'),
  stricter('control_byte', /[\0-\x08\x0b-\x1f\x7f]/, 'node takes control bytes in a reason phrase'),
  stricter(
    'target_malformed',
    /[#"<>]| \s/,
    'node takes `#`, `"`, `<`, `>` in a target and whitespace before it',
  ),
  stricter('version_missing', /\r\n/, 'node speaks HTTP/0.9'),
  stricter(
    'version_malformed',
    / {2}HTTP|RTSP|ICY|^\s|\r\n\r\n\s/,
    'node skips spaces and empty lines, speaks RTSP and ICY',
  ),
  stricter('version_unsupported', /(HTTP|RTSP)\/\d\.\d/, 'node takes HTTP/0.9 and HTTP/2.0 as text'),
  stricter('http2_preface', /PRI /, 'node takes the method PRI on HTTP/0.9'),
  stricter('status_malformed', /HTTP\/1\.[01](?! [1-5]\d\d[ \r])/, 'node takes any number for a status'),
  stricter('framing_lookalike', /_/, 'node takes Transfer_Encoding and Content_Length for any other field'),
  stricter('too_many_fields', /(\r\n[^\r]*){100}/, 'node was set up to count no fields'),
  stricter(
    'content_length_malformed',
    /length:(\s*0\d|.*\t|\s*\d{16})/i,
    'node takes leading zeros, tabs and 2^64',
  ),
  stricter('content_length_unexpected', /Content-Length/i, 'node takes a length on CONNECT, 1xx and 204'),
  stricter('transfer_encoding_unsupported', /Transfer-Encoding/i, 'node looks at the last coding only'),
  stricter(
    'transfer_encoding_repeated',
    /Transfer-Encoding[^]*Transfer-Encoding/i,
    'node looks at the last field only',
  ),
  stricter(
    'transfer_encoding_unexpected',
    /Transfer-Encoding/i,
    'node takes chunked on HTTP/1.0, CONNECT, 1xx and 204',
  ),
  stricter('connection_malformed', /Connection:/i, 'node does not parse the options it does not know'),
  stricter('connection_strips_framing', /Connection:/i, 'node strips no nominated fields'),
  stricter('connection_too_long', /(,[^,]*){64}/, 'node does not count options'),
  stricter('expectation_unknown', /Expect:/i, 'node leaves expectations to its caller'),
  stricter('chunk_size_malformed', /\r\n0[0-9a-f]/i, 'node takes leading zeros'),
  stricter('chunk_size_too_large', /\r\n0[0-9a-f]{16}/i, 'node counts no leading zeros'),
  stricter('chunk_extension_refused', /;/, 'node takes extensions'),
  stricter('chunk_extension_malformed', /;/, 'node takes empty values and extensions of any length'),
  stricter(
    'trailer_has_framing',
    /content.length|transfer.encoding/i,
    'node takes Transfer-Encoding in trailers',
  ),
];

export const laxerReasons: readonly Reason[] = [
  {
    on: 'HPE_INVALID_METHOD',
    why: 'node knows a list of methods; any token is one (RFC 9110 §9.1) and is relayed as it is',
    holds: (_wire, ours) => !METHODS.includes(ours?.start.split(' ')[0] ?? ''),
  },
  {
    on: 'HPE_INVALID_URL',
    why: 'the form of the target is checked against the authority, which is not known here',
    holds: (_wire, ours) => /^[^ ]+ [^/*]/.test(ours?.start ?? ''),
  },
  {
    on: 'HPE_CLOSED_CONNECTION',
    why: 'node obeys `close` in trailers and interim responses; the former are dropped, the latter end nothing',
    holds: (wire) => /Connection:.*close|HTTP\/1\.0 1/i.test(wire),
  },
];

/** The first point at which the readings part; undefined if they agree as far as ours goes. */
export function findDisagreement(ours: Reading, nodes: Reading): Disagreement | undefined {
  for (let k = 0; ; k++) {
    const mine = ours.messages[k];
    const theirs = nodes.messages[k];
    if (mine === undefined) {
      const isOver = theirs === undefined || ours.error === undefined || ours.error === 'closed';
      return isOver ? undefined : { kind: 'stricter', on: ours.error ?? '', ours: undefined };
    }
    if (theirs === undefined) return { kind: 'laxer', on: nodes.error ?? 'nothing', ours: mine };
    const parted = compareMessages(mine, theirs, ours, nodes);
    if (parted !== undefined) return parted;
    if (!mine.complete) return undefined;
  }
}

/** The reason that allows a disagreement, if one is listed. */
export function findReason(found: Disagreement, wire: string): Reason | undefined {
  if (found.kind === 'differs') return undefined;
  const reasons = found.kind === 'stricter' ? stricterReasons : laxerReasons;
  return reasons.find(({ on, holds }) => on === found.on && holds(wire, found.ours));
}

function compareMessages(
  mine: Message,
  theirs: Message,
  ours: Reading,
  nodes: Reading,
): Disagreement | undefined {
  const differs = (on: string): Disagreement => ({ kind: 'differs', on, ours: mine });
  if (mine.start !== theirs.start) return differs('start line');
  if (mine.fields.join('\n') !== theirs.fields.join('\n')) return differs('fields');
  if (mine.complete && !theirs.complete) return { kind: 'laxer', on: nodes.error ?? 'nothing', ours: mine };
  if (!mine.complete && theirs.complete) return { kind: 'stricter', on: ours.error ?? 'nothing', ours: mine };
  return mine.complete && theirs.body !== undefined && mine.body !== theirs.body
    ? differs('body')
    : undefined;
}
