// bytes in a head that some parsers read as a line end, a fold, or another field.
import { response, malformed, relayed } from './row-shapes.ts';
import type { OriginRow } from './origin-script.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const FORGED = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged';
const REST = 'Content-Length: 2\r\n\r\nok';

/** The bytes within a field line, and the cause of the refusal. */
const lines: readonly (readonly [name: string, line: string, cause: string])[] = [
  ['lf-in-value', 'X-A: one\nX-B: two\r\n', 'bare_lf'],
  ['cr-in-value', 'X-A: one\rX-B: two\r\n', 'bare_cr'],
  ['cr-cr-lf', 'X-A: one\r\r\n', 'bare_cr'],
  ['lf-cr', 'X-A: one\n\r', 'bare_lf'],
  ['nul-in-value', 'X-A: one\0two\r\n', 'control_byte'],
  ['bell-in-value', 'X-A: one\x07two\r\n', 'control_byte'],
  ['vertical-tab-in-value', 'X-A: one\x0btwo\r\n', 'control_byte'],
  ['form-feed-in-value', 'X-A: one\x0ctwo\r\n', 'control_byte'],
  ['escape-in-value', 'X-A: \x1b]0;title\x07\r\n', 'control_byte'],
  ['delete-in-value', 'X-A: one\x7ftwo\r\n', 'control_byte'],
  ['control-first-in-value', 'X-A: \x01\r\n', 'control_byte'],
  ['fold-by-space', 'X-A: one\r\n two\r\n', 'line_folded'],
  ['fold-by-tab', 'X-A: one\r\n\tContent-Length: 0\r\n', 'line_folded'],
  ['fold-of-nothing', 'X-A: one\r\n \r\n', 'line_folded'],
  ['first-line-folded', ' X-A: one\r\n', 'line_folded'],
  ['space-before-colon', 'X-A : one\r\n', 'space_before_colon'],
  ['tab-before-colon', 'Set-Cookie\t: a=b\r\n', 'space_before_colon'],
  ['no-colon', 'X-A\r\n', 'colon_missing'],
  ['no-name', ': one\r\n', 'name_empty'],
  ['pseudo-header', ':status: 204\r\n', 'name_empty'],
  ['nul-in-name', 'X-\0A: one\r\n', 'control_byte'],
  ['lf-in-name', 'X-\nA: one\r\n', 'bare_lf'],
  ['cr-in-name', 'X-\rA: one\r\n', 'colon_missing'],
  ['high-byte-in-name', 'X-\xe9: one\r\n', 'name_malformed'],
  ['at-sign-in-name', 'X@A: one\r\n', 'name_malformed'],
  ['parenthesis-in-name', 'X(A): one\r\n', 'name_malformed'],
  ['slash-in-name', 'X/A: one\r\n', 'name_malformed'],
  ['quoted-name', '"X-A": one\r\n', 'name_malformed'],
  ['status-line-as-field', FORGED.slice(0, 17), 'name_malformed'],
];

const refusedLines = lines.map(([name, line, cause]) =>
  malformed(`R-01 ${name}`, `${OK}X-First: 1\r\n${line}${REST}`, cause),
);

const reasons: readonly OriginRow[] = [
  malformed('R-01 lf-in-reason', `HTTP/1.1 200 OK\nX-A: one\r\n${REST}`, 'bare_lf'),
  malformed('R-01 cr-in-reason', `HTTP/1.1 200 OK\rX-A: one\r\n${REST}`, 'bare_cr'),
  malformed('R-01 nul-in-reason', `HTTP/1.1 200 O\0K\r\n${REST}`, 'control_byte'),
  malformed('R-01 escape-in-reason', `HTTP/1.1 200 \x1b[2J\r\n${REST}`, 'control_byte'),
  malformed('R-01 every-line-ends-in-lf', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', 'bare_lf'),
  malformed('R-01 blank-line-is-lf', `${OK}Content-Length: 2\r\n\nok`, 'bare_lf'),
  malformed('R-01 blank-line-is-cr-cr-lf', `${OK}Content-Length: 2\r\n\r\r\nok`, 'bare_cr'),
  malformed('R-01 empty-line-before-head', `\r\n${response([])}`, 'version_malformed'),
  malformed('R-01 space-before-head', ` ${response([])}`, 'version_malformed'),
  malformed('R-01 byte-order-mark-before-head', `\xef\xbb\xbf${response([])}`, 'version_malformed'),
];

// Harmless look-alikes are relayed unchanged: truncating a wide character to one byte would create the attack.
const passed: readonly OriginRow[] = [
  relayed('R-01 wide-characters-that-end-in-crlf', response(['X-A: \xc4\x8d\xc4\x8aX-Evil: 1'])),
  relayed('R-01 next-line-character', response(['X-A: one\x85two'])),
  relayed('R-01 line-separator-in-utf-8', response(['X-A: one\xe2\x80\xa8X-Evil: 1'])),
  relayed('R-01 escaped-line-end', response(['Location: /%0d%0aSet-Cookie:%20a=b'], '', '302 Found')),
  relayed('R-01 latin1-reason', `HTTP/1.1 200 D\xe9j\xe0 vu\r\n${REST}`),
  relayed('R-01 colons-in-value', response(['X-A: :::Content-Length: 0'])),
  relayed('R-01 name-of-symbols', response(["!#$%&'*+-.^_`|~: one"])),
  relayed('R-01 empty-value', response(['X-A:', 'X-B:   '])),
  relayed('R-01 head-byte-by-byte', response(['X-A: one']), undefined, {
    script: { response: [{ drip: response(['X-A: one']) }] },
  }),
];

export const splittingRows: readonly OriginRow[] = [...refusedLines, ...reasons, ...passed];
