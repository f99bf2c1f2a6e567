import { describe, expect, it } from 'vitest';
import { parseSecretChanges } from '../../src/admin/secret-changes.ts';

const CANARY = 'canary value that is no name';
const long = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`N${at}`, 'v']));

describe('changes of workspace secrets', () => {
  it.each([
    ['a map', { A: 'x', _b9: null }],
    ['a list', [{ key: 'A', value: 'x' }]],
    ['nothing', {}],
    ['an empty list', []],
    ['a name of 128', { ['N'.repeat(128)]: 'x' }],
    ['a value of 64 KiB', { A: 'x'.repeat(65536) }],
    ['a thousand', long(1000)],
    ['names that objects have', JSON.parse('{"__proto__": "x", "constructor": "y"}')],
  ])('are taken as %s', (_, body) => {
    const parsed = parseSecretChanges(body);
    const count = Array.isArray(body) ? body.length : Object.keys(body).length;
    expect(parsed.ok && parsed.value.size).toBe(count);
  });

  it.each([
    ['no object', CANARY, [], 'dict_type'],
    ['null', null, [], 'dict_type'],
    ['too many', long(1001), [], 'too_long'],
    ['a name that is none', { A: 'x', [CANARY]: 'y' }, [1], 'string_pattern_mismatch'],
    ['a name that begins with a digit', { '9A': 'x' }, [0], 'string_pattern_mismatch'],
    ['a name that ends with a line', { 'A\n': 'x' }, [0], 'string_pattern_mismatch'],
    ['a name of 129', { ['N'.repeat(129)]: 'x' }, [0], 'string_pattern_mismatch'],
    ['an empty name', { '': 'x' }, [0], 'string_pattern_mismatch'],
    ['an empty value', { A: '' }, ['A'], 'string_too_short'],
    ['a number', { A: 5 }, ['A'], 'string_type'],
    ['an object that looks like text', { A: { toString: CANARY } }, ['A'], 'string_type'],
    ['a value over 64 KiB', { A: 'x'.repeat(65537) }, ['A'], 'string_too_long'],
    ['a value over 64 KiB in UTF-8', { A: 'é'.repeat(32769) }, ['A'], 'string_too_long'],
    ['a lone surrogate', { A: '\ud800' }, ['A'], 'string_unicode'],
    ['an entry that is none', [CANARY], [0], 'dict_type'],
    ['an entry without a key', [{ value: CANARY }], [0, 'key'], 'missing'],
    ['an entry without a value', [{ key: 'A' }], [0, 'value'], 'missing'],
    ['a key that is no text', [{ key: [CANARY], value: 'x' }], [0, 'key'], 'string_type'],
    ['a key that is no name', [{ key: CANARY, value: 'x' }], [0, 'key'], 'string_pattern_mismatch'],
    ['an unknown key', [{ key: 'A', value: 'x', [CANARY]: 1 }], [0], 'extra_forbidden'],
    [
      'a key twice',
      [
        { key: 'A', value: CANARY },
        { key: 'A', value: null },
      ],
      [1, 'key'],
      'value_error',
    ],
  ])('of %s are refused, and nothing is repeated', (_, body, loc, type) => {
    const parsed = parseSecretChanges(body);
    expect(parsed).toEqual({ ok: false, issues: [{ loc, msg: expect.any(String), type }] });
    expect(JSON.stringify(parsed)).not.toContain('canary');
  });

  it('tell every issue at once', () => {
    const parsed = parseSecretChanges({ A: '', B: 1, C: 'x' });
    expect(!parsed.ok && parsed.issues.length).toBe(2);
  });

  it('hold values that do not print', () => {
    const parsed = parseSecretChanges({ A: CANARY });
    expect(JSON.stringify(parsed.ok && [...parsed.value])).toBe('[["A","[secret]"]]');
  });
});
