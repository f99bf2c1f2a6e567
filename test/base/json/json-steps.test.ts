// Large JSON texts: the value of JSON.parse, the rules of parseJsonDocument, and steps that are short.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type JsonRules, parseJsonDocument, STRICT } from '../../../src/base/json/json-document.ts';
import { type JsonStepsReading, parseJsonInSteps } from '../../../src/base/json/json-steps.ts';
import { finish } from '../../../src/base/steps.ts';

const LENIENT: JsonRules = {
  maxDepth: 1000,
  mayRepeatNames: true,
  isStorable: false,
  maxNames: Infinity,
  maxValues: Infinity,
};

const read = (text: string, rules: JsonRules = STRICT): JsonStepsReading =>
  finish(parseJsonInSteps([text], rules));

const kindOf = (text: string, rules?: JsonRules): string => {
  const reading = read(text, rules);
  return reading.ok ? 'ok' : `${reading.error.kind} ${reading.error.position}`;
};

describe('a text', () => {
  it.each<[name: string, text: string, kind: string]>([
    ['with a name in two objects', '{"a":{"a":1},"b":[{"a":1},{"a":2}]}', 'ok'],
    ['with a name twice', '{"a":1,"a":2}', 'repeated_name 7'],
    ['with a name twice, far apart', '{"a":{"b":[1,{}]} ,\n "a" : 2}', 'repeated_name 21'],
    ['with a name twice, once escaped', String.raw`{"a":1,"\u0061":2}`, 'repeated_name 7'],
    ['with __proto__ twice', '{"__proto__":1,"__proto__":2}', 'repeated_name 15'],
    ['with an empty name twice', '{"":1,"":2}', 'repeated_name 6'],
    ['with the name of a method', '{"toString":1}', 'ok'],
    ['of 32 levels', `${'['.repeat(32)}${']'.repeat(32)}`, 'ok'],
    ['of 33 levels', `${'['.repeat(33)}${']'.repeat(33)}`, 'too_deep 32'],
    ['with a million escapes', `{"a":"${String.raw`\"`.repeat(1e6)}","a":1}`, 'repeated_name 2000008'],
    ['cut short', '{"a":', 'not_json 5'],
    ['cut short in a string', '["ab', 'not_json 4'],
    ['with a comma too many', '{"a":1,}', 'not_json 7'],
    ['with a comma too many in a list', '[1,]', 'not_json 3'],
    ['with two values', '{} {}', 'not_json 3'],
    ['with the wrong bracket', '[1}', 'not_json 2'],
    ['with a line break in a string', '["a\n"]', 'not_json 3'],
    ['with an unknown escape', String.raw`["\x"]`, 'not_json 2'],
    ['with half an escape', String.raw`["\u12"]`, 'not_json 2'],
    ['without anything', '', 'not_json 0'],
  ])('%s', (_name, text, kind) => expect(kindOf(text)).toBe(kind));

  it('with U+0000 or half of a surrogate pair is rejected with its path, unless the rules allow it', () => {
    for (const [text, path] of [
      [String.raw`{"a":["x","\u0000"]}`, ['a', 1]],
      [String.raw`[[1,{"b":2,"c":{"d":"\ud800"}}]]`, [0, 1, 'c', 'd']],
      [String.raw`{"a":{"\u0000":1}}`, ['a', '…']],
      [String.raw`"\udc00"`, []],
    ] as const) {
      expect(read(text)).toMatchObject({ ok: false, error: { kind: 'unstorable', path } });
      expect(read(text, LENIENT)).toEqual({ ok: true, value: JSON.parse(text) });
    }
    expect(kindOf(String.raw`["\ud83d\ude00", "😀"]`)).toBe('ok');
  });

  it('with more names than the rules allow is rejected at the first of them', () => {
    const rules = { ...STRICT, maxNames: 3 };
    expect(kindOf('[{"a":1},{"a":{"b":[1,2,3,4]}}]', rules)).toBe('ok');
    expect(kindOf('[{"a":1},{"a":{"b":1}},{"c":1}]', rules)).toBe('too_many_names 24');
  });

  it('with more values than the rules allow is rejected at the comma before the first of them', () => {
    const rules = { ...STRICT, maxValues: 3 };
    expect(kindOf('{"a":[1,2,","],"b":[3]}', rules)).toBe('ok');
    expect(kindOf('{"a":[1,2,","],"b":[3,4]}', rules)).toBe('too_many_values 21');
  });

  it('that may repeat names has the last of each, as with JSON.parse', () => {
    const text = '{"a":1,"b":{"__proto__":1,"__proto__":[2]},"a":3}';
    expect(read(text, LENIENT)).toEqual({ ok: true, value: JSON.parse(text) });
  });

  it('written from values parses to what JSON.parse gives', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 5, stringUnit: 'binary' }),
        fc.constantFrom(0, 1, '\t'),
        (value, indent) => {
          const text = JSON.stringify(value, null, indent);
          const parsed = read(text, LENIENT);
          expect(parsed).toEqual({ ok: true, value: JSON.parse(text) });
          // The order of the members too.
          if (parsed.ok) expect(JSON.stringify(parsed.value)).toBe(JSON.stringify(JSON.parse(text)));
        },
      ),
    );
  });

  it('has the same value in whatever pieces it arrives', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.array(fc.nat({ max: 5 })), (value, sizes) => {
        const text = JSON.stringify(value, null, 1);
        const pieces = sizes.map((size, at) => {
          const start = sizes.slice(0, at).reduce((sum, one) => sum + one, 0);
          return text.slice(start, start + size);
        });
        const rest = text.slice(sizes.reduce((sum, one) => sum + one, 0));
        const reading = finish(parseJsonInSteps([...pieces, rest], LENIENT));
        expect(reading).toEqual({ ok: true, value: JSON.parse(text) });
      }),
    );
  });

  it('is JSON exactly if it is JSON for JSON.parse, and breaks the same rules as in one step', () => {
    const unit = fc.constantFrom(
      ...'{}[]",:\\/abu01eE+-. \n\t',
      '"a":',
      '"a"',
      'null',
      'true',
      String.raw`\u0061`,
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 24 }), (text) => {
        const whole = parseJsonDocument(text, { ...LENIENT, mayRepeatNames: false });
        const inSteps = read(text, { ...LENIENT, mayRepeatNames: false });
        expect(inSteps.ok).toBe(whole.ok);
        if (whole.ok && inSteps.ok) expect(inSteps.value).toEqual(whole.value);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a step', () => {
  it.each<[name: string, text: string]>([
    ['members', `{${Array.from({ length: 30_000 }, (_, at) => `"${at}":1`).join(',')}}`],
    ['elements', JSON.stringify(Array.from({ length: 100_000 }, () => 1))],
    ['one string', JSON.stringify('a'.repeat(1_000_000))],
    ['one string of escapes', `"${String.raw`\u0061`.repeat(200_000)}"`],
  ])('takes a small share of a text of %s', (_name, text) => {
    let steps = 0;
    const running = parseJsonInSteps([text], STRICT);
    let step = running.next();
    for (; step.done !== true; step = running.next()) steps += 1;
    expect(step.value).toMatchObject({ ok: true });
    expect(text.length / steps).toBeLessThan(100_000);
  });
  it.each<[name: string, text: string]>([
    ['members', JSON.stringify(Array.from({ length: 100_000 }, (_, at) => ({ at })))],
    ['one string', JSON.stringify('a'.repeat(3_000_000))],
    ['one string of escapes', `"${String.raw`\n`.repeat(1_000_000)}"`],
    ['space', `[${' '.repeat(3_000_000)}]`],
    ['space before it', `${' '.repeat(3_000_000)}1`],
    ['space before a colon', `{"a"${' '.repeat(3_000_000)}:1}`],
  ])('takes no more of %s than is near its position', (_name, text) => {
    let taken = 0;
    function* pieces(): Generator<string> {
      for (let at = 0; at < text.length; at += 10_000) {
        taken += 1;
        yield text.slice(at, at + 10_000);
      }
    }
    const running = parseJsonInSteps(pieces(), { ...LENIENT });
    const takenInStep: number[] = [];
    for (let before = 0; ; before = taken) {
      const step = running.next();
      takenInStep.push(taken - before);
      if (step.done !== true) continue;
      expect(step.value).toMatchObject({ ok: true });
      break;
    }
    // The first step looks 65 536 characters ahead; a later one as far as it has gone.
    expect(Math.max(...takenInStep)).toBeLessThanOrEqual(14);
  });
});
