// heads that are too large. They are refused before they are buffered completely.
import { response, malformed, relayed } from './row-shapes.ts';
import type { OriginRow } from './origin-script.ts';

const LIMIT = 32_768;
const headOf = (bytes: number): string => {
  const [before, behind] = ['HTTP/1.1 200 OK\r\nX-Pad: ', '\r\nContent-Length: 2\r\n\r\n'];
  return `${before}${'x'.repeat(bytes - before.length - behind.length)}${behind}`;
};
const fields = (count: number): string[] => Array.from({ length: count }, (_, i) => `X-${i}: v`);
const cookie = `Set-Cookie: id=${'x'.repeat(4_000)}`;

export const bombRows: readonly OriginRow[] = [
  relayed('R-08 head-at-the-limit', `${headOf(LIMIT)}ok`),
  malformed('R-08 head-beyond-the-limit', `${headOf(LIMIT + 1)}ok`, 'head_too_large'),
  relayed('R-08 hundred-fields', response(fields(99))),
  malformed('R-08 hundred-and-one-fields', response(fields(100)), 'too_many_fields'),
  malformed('R-08 five-thousand-fields', response(fields(5_000)), 'too_many_fields'),
  malformed(
    'R-08 cookies-of-a-mebibyte',
    response(Array.from({ length: 262 }, () => cookie)),
    'head_too_large',
  ),
  malformed(
    'R-08 one-value-of-a-mebibyte',
    `HTTP/1.1 200 OK\r\nX-A: ${'x'.repeat(1_048_576)}\r\n\r\n`,
    'head_too_large',
  ),
  malformed(
    'R-08 one-name-of-forty-kibibytes',
    `HTTP/1.1 200 OK\r\n${'X'.repeat(40_960)}: v\r\n\r\n`,
    'head_too_large',
  ),
  malformed(
    'R-08 reason-of-forty-kibibytes',
    `HTTP/1.1 200 ${'O'.repeat(40_960)}K\r\n\r\n`,
    'head_too_large',
  ),
  malformed(
    'R-08 spaces-of-forty-kibibytes',
    `HTTP/1.1 200 OK\r\nX-A:${' '.repeat(40_960)}v\r\n\r\n`,
    'head_too_large',
  ),
  malformed('R-08 head-without-end', [], 'head_too_large', {
    script: { response: [{ send: 'HTTP/1.1 200 OK\r\n' }, { flood: `X-A: ${'x'.repeat(1_000)}\r\n` }] },
  }),
  malformed('R-08 reason-without-end', [], 'head_too_large', {
    script: { response: [{ send: 'HTTP/1.1 200 ' }, { flood: 'O'.repeat(1_000) }] },
  }),
  malformed('R-08 fields-of-two-bytes-without-end', [], 'too_many_fields', {
    script: { response: [{ send: 'HTTP/1.1 200 OK\r\n' }, { flood: 'a:\r\n' }] },
  }),
  malformed(
    'R-08 hundred-and-one-fields-in-a-hint',
    `${['HTTP/1.1 103 Early Hints', ...fields(101), '', ''].join('\r\n')}${response([])}`,
    'too_many_fields',
  ),
  malformed(
    'R-08 four-hundred-options-of-the-connection',
    response([`Connection: ${'a,'.repeat(400)}b`]),
    'connection_too_long',
  ),
];
