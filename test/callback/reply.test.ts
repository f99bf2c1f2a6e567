import { describe, expect, it } from 'vitest';
import * as fc from 'fast-check';
import { parseReply } from '../../src/callback/reply.ts';

const CANARY = 'canary-4f1d9c';

function headersOf(text: string | Uint8Array): Record<string, string> | string {
  const reply = parseReply(typeof text === 'string' ? Buffer.from(text) : text);
  if (!reply.ok) return reply.reason;
  return Object.fromEntries(
    reply.headers.map(({ name, value }) => [name, typeof value === 'string' ? 'in clear' : value.reveal()]),
  );
}

const many = (count: number): string =>
  JSON.stringify({ headers: Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, 'v'])) });

const accepted: readonly [string, string, Record<string, string>][] = [
  ['one header', '{"headers":{"Authorization":"Bearer x"}}', { Authorization: 'Bearer x' }],
  ['no header', '{"headers":{}}', {}],
  ['white space around', ' \r\n{ "headers" : { "a" : "b" } }\n', { a: 'b' }],
  [
    'other members, whatever they hold',
    '{"headers":{"a":"b"},"expires":1,"x":[null,{"headers":[]}]}',
    { a: 'b' },
  ],
  ['escapes', String.raw`{"hea\u0064ers":{"a":"\u0062 \"c\""}}`, { a: 'b "c"' }],
  ['one name in two objects', '{"a":{"a":1},"headers":{"a":"b"}}', { a: 'b' }],
  ['braces, quotes and colons inside strings', String.raw`{"headers":{"a":"{\"a\":1}"}}`, { a: '{"a":1}' }],
];

it.each(accepted)('accepts %s', (_, text, headers) => {
  expect(headersOf(text)).toEqual(headers);
});

it('accepts 64 headers and values of 8,192 bytes', () => {
  expect(Object.keys(headersOf(many(64)))).toHaveLength(64);
  expect(headersOf(JSON.stringify({ headers: { a: 'v'.repeat(8_192) } }))).toEqual({ a: 'v'.repeat(8_192) });
});

it('accepts values of 16,384 bytes together', () => {
  expect(headersOf(JSON.stringify({ headers: { a: 'v'.repeat(8_192), b: 'v'.repeat(8_192) } }))).toBeTypeOf(
    'object',
  );
});

it('gives frozen headers whose values are secrets, each masking itself', () => {
  const reply = parseReply(Buffer.from('{"headers":{"a":"b"}}'));
  if (!reply.ok) throw new Error(reply.reason);
  const [header] = reply.headers;
  expect(header?.masks).toEqual([header?.value]);
  expect(`${header?.value}`).toBe('[secret]');
  expect([reply.headers, header, header?.masks].every(Object.isFrozen)).toBe(true);
});

it('masks each part of a value that may be echoed by itself', () => {
  const reply = parseReply(Buffer.from('{"headers":{"Cookie":"sid=abcdefgh-1; csrf=ijklmnop-2"}}'));
  if (!reply.ok) throw new Error(reply.reason);
  const masks = reply.headers.flatMap((header) => header.masks);
  expect(masks.map((mask) => mask.reveal())).toEqual([
    'sid=abcdefgh-1; csrf=ijklmnop-2',
    'abcdefgh-1',
    'ijklmnop-2',
  ]);
});

const NOT_JSON = 'body is not JSON in UTF-8';
const NO_HEADERS = 'body is not an object with "headers"';
const NOT_OBJECT = '"headers" is not an object';
const NAME_1 = 'the name of header 1 may not be injected';
const VALUE_1 = 'the value of header 1 is not a valid field value';
const STRING_1 = 'the value of header 1 is not a string';
const TWICE = 'two headers have one name';
const REPEATED = 'body repeats a member name';

const refused: readonly [string, string | Uint8Array, string][] = [
  ['nothing', '', 'empty body'],
  [
    'values of more than 16,384 bytes together',
    JSON.stringify({ headers: { a: 'v'.repeat(8_192), b: 'v'.repeat(8_192), c: 'v' } }),
    'the values together have more than 16384 bytes',
  ],
  ['text', CANARY, NOT_JSON],
  ['JSON cut short', `{"headers":{"a":"${CANARY}"`, NOT_JSON],
  ['JSON with a tail', `{"headers":{}} ${CANARY}`, NOT_JSON],
  ['a byte order mark', '\uFEFF{"headers":{}}', NOT_JSON],
  ['UTF-16', Buffer.from('{"headers":{}}', 'utf16le'), NOT_JSON],
  ['a byte that is not UTF-8', Buffer.from('{"headers":{},"x":"\xff"}', 'latin1'), NOT_JSON],
  ['an overlong encoding', Buffer.from('{"headers":{},"x":"\xc0\xaf"}', 'latin1'), NOT_JSON],
  ['null', 'null', NO_HEADERS],
  ['a string', `"${CANARY}"`, NO_HEADERS],
  ['a number', '1', NO_HEADERS],
  ['an array', '[{"headers":{}}]', NO_HEADERS],
  ['an empty object', '{}', NO_HEADERS],
  ['headers in the wrong case', '{"Headers":{}}', NO_HEADERS],
  ['headers by way of __proto__', `{"__proto__":{"headers":{"a":"${CANARY}"}}}`, NO_HEADERS],
  ['headers that are null', '{"headers":null}', NOT_OBJECT],
  ['headers in an array', `{"headers":["${CANARY}"]}`, NOT_OBJECT],
  ['headers in a string', `{"headers":"${CANARY}"}`, NOT_OBJECT],
  ['a number as value', '{"headers":{"a":1}}', STRING_1],
  ['null as value', '{"headers":{"a":null}}', STRING_1],
  ['a list as value', `{"headers":{"a":["${CANARY}"]}}`, STRING_1],
  ['__proto__ with an object as value', `{"headers":{"__proto__":{"a":"${CANARY}"}}}`, STRING_1],
  ['an empty name', '{"headers":{"":"v"}}', NAME_1],
  ['a name with a space', `{"headers":{"a ${CANARY}":"v"}}`, NAME_1],
  ['a name with a line end', String.raw`{"headers":{"a\r\nb":"v"}}`, NAME_1],
  ['a pseudo-header', '{"headers":{":authority":"v"}}', NAME_1],
  ['Host', '{"headers":{"Host":"v"}}', NAME_1],
  ['Content-Length', '{"headers":{"content-length":"0"}}', NAME_1],
  ['Transfer_Encoding', '{"headers":{"Transfer_Encoding":"chunked"}}', NAME_1],
  ['Proxy-Authorization', `{"headers":{"Proxy-Authorization":"${CANARY}"}}`, NAME_1],
  ['an empty value', '{"headers":{"a":""}}', VALUE_1],
  ['a value with CR LF', String.raw`{"headers":{"a":"v\r\nb: ${CANARY}"}}`, VALUE_1],
  ['a value with NUL', String.raw`{"headers":{"a":"${CANARY}\u0000"}}`, VALUE_1],
  ['a value outside ASCII', `{"headers":{"a":"${CANARY}é"}}`, VALUE_1],
  ['a value with a space at its end', `{"headers":{"a":"${CANARY} "}}`, VALUE_1],
  ['a value of 8,193 bytes', `{"headers":{"a":"${'v'.repeat(8_193)}"}}`, VALUE_1],
  [
    'a good header before a bad one',
    `{"headers":{"a":"${CANARY}","b":1}}`,
    'the value of header 2 is not a string',
  ],
  ['65 headers', many(65), 'more than 64 headers'],
  ['one name in two cases', `{"headers":{"X-Key":"${CANARY}","x-key":"v"}}`, TWICE],
  ['one name by - and _', `{"headers":{"X-Key":"${CANARY}","X_Key":"v"}}`, TWICE],
  ['two members headers', `{"headers":{"a":"${CANARY}"},"headers":{}}`, REPEATED],
  ['a header given twice', `{"headers":{"a":"${CANARY}","a":"v"}}`, REPEATED],
  ['a header given twice, one escaped', String.raw`{"headers":{"a":"v","\u0061":"${CANARY}"}}`, REPEATED],
  [
    'a deep array',
    `{"headers":{},"x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
    'body is nested too deeply',
  ],
  ['deep objects', `${'{"a":'.repeat(33)}1${'}'.repeat(33)}`, 'body is nested too deeply'],
];

describe('refuses', () => {
  it.each(refused)('%s', (_, text, reason) => {
    expect(headersOf(text)).toBe(reason);
    expect(reason).not.toContain(CANARY);
  });
});

it('never throws, whatever the bytes', () => {
  const scraps = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    '\\',
    ':',
    ',',
    '"headers"',
    '"a"',
    '1',
    'null',
    ' ',
    '\n',
  );
  const text = fc.array(scraps, { maxLength: 40 }).map((parts) => parts.join(''));
  fc.assert(fc.property(fc.oneof(text, fc.json(), fc.string()), (body) => void headersOf(body)));
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (body) => void headersOf(body)));
});

it('repeats are found exactly: any JSON that was made from values has none', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      expect(headersOf(JSON.stringify({ value, headers: { a: 'b' } }))).toEqual({ a: 'b' });
    }),
  );
});
