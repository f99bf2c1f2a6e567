import { anything, array, assert, dictionary, integer, json, oneof, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { finish } from '../../../src/base/steps.ts';
import { isLarge, jsonInSteps, mapList } from '../../../src/platform/api/json-text.ts';
import { runs } from '../../support/run-size.ts';

const countTo = (length: number): readonly number[] => Array.from({ length }, (_, index) => index);

describe('the JSON text of a body in steps', () => {
  it('is that of JSON.stringify', () => {
    const value = oneof(
      json().map((text): unknown => JSON.parse(text)),
      anything({ withNullPrototype: false }),
    );
    const body = oneof(array(value), dictionary(string(), oneof(value, array(value))));
    const isPlain = (each: object): boolean => !('toJSON' in each);
    assert(
      property(body.filter(isPlain), (each) => {
        let wanted: string | undefined;
        try {
          wanted = JSON.stringify(each);
        } catch (error) {
          // A bigint.
          expect(() => finish(jsonInSteps(each))).toThrow(String((error as Error).message));
          return;
        }
        expect(finish(jsonInSteps(each))).toBe(wanted);
      }),
      { numRuns: runs(1000) },
    );
  });

  it('has the members of a mapped list, each made once and in its step', () => {
    assert(
      property(integer({ min: 0, max: 40 }), (length) => {
        let made = 0;
        const items = mapList(countTo(length), (row) => ({ row, at: (made += 1) }));
        const steps = jsonInSteps({ items, cursor: null });
        const atOnce: number[] = [];
        for (let before = 0, step = steps.next(); ; step = steps.next()) {
          atOnce.push(made - before);
          before = made;
          if (step.done !== true) continue;
          expect(JSON.parse(step.value)).toEqual({
            items: countTo(length).map((row) => ({ row, at: row + 1 })),
            cursor: null,
          });
          break;
        }
        expect([made, Math.max(...atOnce) <= 8]).toEqual([length, true]);
      }),
      { numRuns: runs(100) },
    );
  });

  it('of a mapped list at once is the same', () => {
    const body = { items: mapList(countTo(20), (row) => ({ row })) };
    expect(JSON.stringify(body)).toBe(finish(jsonInSteps(body)));
  });
});

describe('a body', () => {
  it.each<[string, unknown, boolean]>([
    ['a text', 'text', false],
    ['nothing', null, false],
    ['a short list', countTo(8), false],
    ['a long list', countTo(9), true],
    ['an object without a list', { text: 'x'.repeat(10_000) }, false],
    ['an object with a long list', { cursor: null, items: countTo(9) }, true],
    ['an object with a long mapped list', { items: mapList(countTo(9), String) }, true],
  ])('that is %s is made at once or in steps', (_, body, wanted) => {
    expect(isLarge(body)).toBe(wanted);
  });
});
