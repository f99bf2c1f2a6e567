// `{NAME}` in a value: any number of them, read once.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseSecretTemplate } from '../../../src/policy/document/secret-template.ts';

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
    ['', /should name a secret/],
    ['Bearer TOKEN', /should name a secret/],
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
  it.each(errors)('"%s" is none', (text, error) => {
    expect(parseSecretTemplate(text)).toMatch(error);
  });

  it('is written again from its parts', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('{', '}', 'A', ' ', '1') }), (text) => {
        const template = parseSecretTemplate(text);
        if (typeof template === 'string') return;
        const again = template.parts.map((part) => (typeof part === 'string' ? part : `{${part.secret}}`));
        expect(again.join('')).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });
});
