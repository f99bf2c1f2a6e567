import { describe, expect, it } from 'vitest';
import { parseSecretDocument, parseSecretLines } from '../../../src/sidecar/sandboxes/secret-document.ts';

const CANARY = 'canary-7b33e0';

const lines: readonly [string, string, Record<string, string>][] = [
  ['a name and a value', 'A=b', { A: 'b' }],
  ['several, comments and blank lines', '# first\nA=1\n\n  # second\n_b2=2\n', { A: '1', _b2: '2' }],
  ['Windows line ends', 'A=1\r\nB=2\r\n', { A: '1', B: '2' }],
  ['export', 'export A=1\nexport\tB=2', { A: '1', B: '2' }],
  ['a name that begins with export', 'exported=1', { exported: '1' }],
  ['blanks around name and value', '  A = b c  ', { A: 'b c' }],
  ['double quotes', 'A=" b "', { A: ' b ' }],
  ['single quotes', "A=' b '", { A: ' b ' }],
  ['empty quotes', 'A=""', { A: '' }],
  ['the other quote inside', `A="it's"`, { A: "it's" }],
  ['quotes in the middle', 'A=b"c"', { A: 'b"c"' }],
  ['no escapes', String.raw`A="b\n$HOME"`, { A: String.raw`b\n$HOME` }],
  ['= and # inside the value', 'A=b==#c # d', { A: 'b==#c # d' }],
  ['no value', 'A=', { A: '' }],
  ['a name that objects have', '__proto__=a', { ['__proto__']: 'a' }],
  ['nothing', '', {}],
];

it.each(lines)('lines: %s', (_, text, secrets) => {
  const found = parseSecretLines(text, 'secrets.env').map(({ name, value }) => [name, value]);
  expect(found).toEqual(Object.entries(secrets));
});

it('lines: each has its location', () => {
  const from = parseSecretLines('# one\nA=1\n\nB=2', 'secrets.env').map((secret) => secret.from);
  expect(from).toEqual(['secrets.env:2', 'secrets.env:4']);
});

const ADVICE =
  'this line must be NAME=value, and a name must have only letters, digits and underscores, and no digit at the beginning';
const QUOTES = 'a value that begins with a quote must end with the same quote and contain no other';

const errors: readonly [string, string, string][] = [
  ['a line without =', `A=1\n${CANARY}`, `secrets.env:2: ${ADVICE}`],
  ['no name', `=${CANARY}`, `secrets.env:1: ${ADVICE}`],
  ['a name with a hyphen', `${CANARY}=1`, `secrets.env:1: ${ADVICE}`],
  ['a name that begins with a digit', '1A=1', `secrets.env:1: ${ADVICE}`],
  ['a name with a blank', `set A=${CANARY}`, `secrets.env:1: ${ADVICE}`],
  ['a name twice', `A=1\nB=2\nA=${CANARY}`, 'secrets.env:3: A is set before, at secrets.env:1'],
  ['a quote that does not end', `A="${CANARY}`, `secrets.env:1: ${QUOTES}`],
  ['a quote alone', "A='", `secrets.env:1: ${QUOTES}`],
  ['something after the quote', `A="${CANARY}" # b`, `secrets.env:1: ${QUOTES}`],
  ['its own quote inside', `A="b"${CANARY}"`, `secrets.env:1: ${QUOTES}`],
];

const jsonErrors: readonly [string, string, string][] = [
  ['JSON cut short', `{"A":"${CANARY}`, 'fd: it begins with { but is not valid JSON'],
  ['a name twice', `{"A":"a","\\u0041":"${CANARY}"}`, 'fd: a name occurs twice'],
  ['a number', '{"A":1}', 'fd: A must be a string'],
  ['an object', `{"A":{"B":"${CANARY}"}}`, 'fd: A must be a string'],
  [
    'a name with a hyphen',
    `{"${CANARY}":"a"}`,
    'fd: each name must have only letters, digits and underscores, and no digit at the beginning',
  ],
];

describe('an error gives the location, never the text', () => {
  it.each(errors)('lines: %s', (_, text, message) => {
    expect(() => parseSecretLines(text, 'secrets.env')).toThrow(new Error(message));
  });
  it.each(jsonErrors)('JSON: %s', (_, text, message) => {
    expect(() => parseSecretDocument(text, 'fd')).toThrow(new Error(message));
  });
});

it('a document is JSON when it begins with a brace, and lines otherwise', () => {
  expect(parseSecretDocument(' \n{"A":"b","C":""}', 'fd')).toEqual([
    { name: 'A', value: 'b', from: 'fd' },
    { name: 'C', value: '', from: 'fd' },
  ]);
  expect(parseSecretDocument('A={"B":1}', 'fd')).toEqual([{ name: 'A', value: '{"B":1}', from: 'fd:1' }]);
});
