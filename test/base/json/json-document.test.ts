// JSON with one meaning only: repeated names, depth, and the position of what is wrong.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJsonDocument } from '../../../src/base/json/json-document.ts';

const kindOf = (text: string): string => {
  const reading = parseJsonDocument(text);
  return reading.ok ? 'ok' : `${reading.error.kind} ${reading.error.position}`;
};

/** A list of so many objects of a hundred names, none of which occurs twice. */
const objects = (count: number): string =>
  JSON.stringify(
    Array.from({ length: count }, (_, o) =>
      Object.fromEntries(Array.from({ length: 100 }, (__, n) => [`${o}-${n}`, 0])),
    ),
  );

describe('a document', () => {
  it.each<[name: string, text: string, kind: string]>([
    ['with a name in two objects', '{"a":{"a":1},"b":[{"a":1},{"a":2}]}', 'ok'],
    ['with names in a value', String.raw`{"a":"{\"a\":1,\"a\":1}","b":"\\"}`, 'ok'],
    ['with a repeated value', '["a","a",{"a":"a"}]', 'ok'],
    ['with a name twice', '{"a":1,"a":2}', 'repeated_name 7'],
    ['with a name twice, far apart', '{"a":{"b":[1,{}]} ,\n "a" : 2}', 'repeated_name 21'],
    ['with a name twice, once escaped', String.raw`{"a":1,"\u0061":2}`, 'repeated_name 7'],
    ['with a name twice, deep inside', '[{"x":[{"a":1,"a":1}]}]', 'repeated_name 14'],
    ['with __proto__ twice', '{"__proto__":1,"__proto__":2}', 'repeated_name 15'],
    ['with an empty name twice', '{"":1,"":2}', 'repeated_name 6'],
    ['of 32 levels', `${'['.repeat(32)}${']'.repeat(32)}`, 'ok'],
    ['of 33 levels', `${'['.repeat(33)}${']'.repeat(33)}`, 'too_deep 32'],
    ['of a million levels', `${'['.repeat(1e6)}${']'.repeat(1e6)}`, 'too_deep 32'],
    ['of a million levels, not closed', '['.repeat(1e6), 'not_json undefined'],
    ['with brackets in strings', `["${'['.repeat(99)}","\\"${'{'.repeat(99)}"]`, 'ok'],
    ['of 30,000 names', objects(300), 'ok'],
    ['of a million commas', `[${'0,'.repeat(1_000_000)}0]`, 'ok'],
    ['of a million and one commas', `[${'0,'.repeat(1_000_001)}0]`, 'too_many_values 2000002'],
    ['of 30,001 names', `[${objects(300)},{"a":1}]`, 'too_many_names 316607'],
    ['with colons in strings', `{"${':'.repeat(40_000)}":":"}`, 'ok'],
    ['with a name twice behind white space', `{"a" \t\r\n:1,"a"${' '.repeat(1e6)}:2}`, 'repeated_name 11'],
    ['with a string that does not end', '["a\\', 'not_json undefined'],
    ['with a million escapes', `{"a":"${String.raw`\"`.repeat(1e6)}","a":1}`, 'repeated_name 2000008'],
    ['cut short', '{"a":', 'not_json undefined'],
    ['with a comma too many', '{"a":1,}', 'not_json 7'],
  ])('%s', (_name, text, kind) => expect(kindOf(text)).toBe(kind));

  it('written from values parses to those values', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(0, 1, '\t'), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(parseJsonDocument(text)).toEqual({ ok: true, value: JSON.parse(text) });
      }),
    );
  });

  it('that is not JSON never throws', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:\\a1 ') }), (text) => void kindOf(text)),
    );
  });
});
