// Which names and values may be injected, that no message quotes a value, and templates with secrets.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  foldHeaderName,
  headerNameError,
  headerValueError,
  parseSecretTemplate,
  requestHeaderNameError,
} from '../../../src/policy/document/header-rules.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { runs } from '../../support/run-size.ts';

describe('a header name', () => {
  const allowed = [
    'Authorization',
    'X-Api-Key',
    'x_api_key',
    'Cookie',
    'Content-Type',
    'Accept',
    'X-1',
    "!#$%&'*+-.^_`|~",
  ];
  it.each([...allowed, 'constructor', '__proto__', 'Teapot', 'Hosting'])('%s may be injected', (name) => {
    expect(headerNameError(name)).toBeUndefined();
  });

  const forbidden = [
    ...[
      'Host',
      'HOST',
      'Content-Length',
      'Transfer-Encoding',
      'Connection',
      'TE',
      'te',
      'Trailer',
      'Upgrade',
    ],
    ...['Keep-Alive', 'Expect', 'Proxy-Authorization', 'proxy-connection', 'Proxy-', 'Proxy_Authenticate'],
    ...[
      'Content_Length',
      'transfer_encoding',
      'KEEP_ALIVE',
      ':path',
      ':authority',
      '',
      'a b',
      'a:',
      'a\r\nb',
      'a\0',
    ],
    ...['ä', 'a\x7f', '(a)', 'a,b', ' a', 'a'.repeat(257)],
  ];
  it.each(forbidden)('"%s" may not', (name) => {
    expect(headerNameError(name)).toMatch(/\w/);
    expect(requestHeaderNameError(name)).toMatch(/\w/);
  });

  it.each(['Content-Type', 'content_type', 'Accept-Encoding', 'Accept', 'Content-Encoding'])(
    '%s is the proxy’s own on a callback request',
    (name) => {
      expect(headerNameError(name)).toBeUndefined();
      expect(requestHeaderNameError(name)).toMatch(/set by the proxy/);
    },
  );

  it('is one name in every case and with either of - and _', () => {
    expect(foldHeaderName('X_Api-KEY')).toBe('x-api-key');
  });
});

describe('a header value', () => {
  it.each(['x', 'Bearer abc', 'a\tb', '~!"{}', 'a'.repeat(8192)])('is sound', (value) => {
    expect(headerValueError(value)).toBeUndefined();
  });

  const invalid: readonly [name: string, value: string][] = [
    ['an empty one', ''],
    ['a line break at the end, as files have', 'abc\n'],
    ['a header smuggled in', 'abc\r\nX-Evil: 1'],
    ['a bare CR', 'a\rb'],
    ['NUL', 'a\0b'],
    ['DEL', 'a\x7fb'],
    ['latin1', 'caf\xe9'],
    ['text outside latin1', '€'],
    ['a space before', ' a'],
    ['a tab behind', 'a\t'],
    ['spaces only', '  '],
    ['8193 bytes', 'a'.repeat(8193)],
  ];
  it.each(invalid)('%s is rejected', (_name, value) => {
    expect(headerValueError(value)).toMatch(/\w/);
  });

  it('is never repeated in the reason', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 6, unit: fc.constantFrom('#', '\n', '@', '\0') }), (value) => {
        expect(headerValueError(value) ?? '').not.toContain(value);
      }),
    );
  });
  it('that is sound is taken by node:http as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (value) => {
        if (headerValueError(value) !== undefined) return;
        expect(new Headers({ 'x-v': value }).get('x-v')).toBe(value);
      }),
    );
  });
});

describe('a template', () => {
  const rows: readonly [text: string, parts: readonly (string | { secret: string })[]][] = [
    ['{TOKEN}', [{ secret: 'TOKEN' }]],
    ['Bearer {TOKEN}', ['Bearer ', { secret: 'TOKEN' }]],
    ['{USER}:{PASS}', [{ secret: 'USER' }, ':', { secret: 'PASS' }]],
    ['{A}{A}', [{ secret: 'A' }, { secret: 'A' }]],
    ['a {_x1} b', ['a ', { secret: '_x1' }, ' b']],
    ['{__proto__}', [{ secret: '__proto__' }]],
    ['$TOKEN {a}', ['$TOKEN ', { secret: 'a' }]],
  ];
  it.each(rows)('%s', (text, parts) => {
    expect(parseSecretTemplate(text)).toEqual({ parts });
  });

  const errors: readonly [text: string, error: RegExp][] = [
    ['', /must name a secret/],
    ['Bearer TOKEN', /must name a secret/],
    ['{', /brace/],
    ['}', /brace/],
    ['{}', /brace/],
    ['{A', /brace/],
    ['A}', /brace/],
    ['{A}}', /brace/],
    ['{{A}}', /brace/],
    ['{A-B}', /brace/],
    ['{1A}', /brace/],
    ['{A B}', /brace/],
    ['{ä}', /brace/],
    ['{A} {', /brace/],
  ];
  it.each(errors)('"%s" is rejected', (text, error) => {
    expect(parseSecretTemplate(text)).toMatch(error);
  });

  it('is the concatenation of its parts', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('{', '}', 'A', ' ', '1') }), (text) => {
        const template = parseSecretTemplate(text);
        if (typeof template === 'string') return;
        const again = template.parts.map((part) => (typeof part === 'string' ? part : `{${part.secret}}`));
        expect(again.join('')).toBe(text);
      }),
      { numRuns: runs(2000) },
    );
  });
});
