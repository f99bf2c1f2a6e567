import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isStorable, pathToUnstorable } from '../../../../src/base/json/storable-text.ts';
import { deriveValues, MAX_TEXT } from '../../../../src/platform/traces/runs/run-derivation.ts';

describe('what is derived', () => {
  it('from any JSON is storable and bounded', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom('inputs', 'outputs', 'extra', 'events', 'error'),
        (value, field) => {
          const derived = deriveValues(field, { value, metadata: value, 'a\0b': '\ud800' });
          expect(pathToUnstorable(derived)).toBeUndefined();
          expect(JSON.stringify(derived).length).toBeLessThan(10 * MAX_TEXT);
        },
      ),
    );
  });

  it('from inputs are pairs by path, and the text', () => {
    const inputs = { q: 'x\0', deep: { list: [1, { b: true }] }, none: null };
    expect(deriveValues('inputs', inputs)).toEqual({
      inputs_pairs: { q: 'x\ufffd', 'deep.list.0': '1', 'deep.list.1.b': 'true', none: null },
      inputs_text: '{"q":"x\ufffd","deep":{"list":[1,{"b":true}]},"none":null}',
    });
  });

  it('from large inputs is the beginning of their text, and few pairs', () => {
    const { inputs_text = '', inputs_pairs = {} } = deriveValues(
      'inputs',
      Array.from({ length: 50_000 }, String),
    );
    expect([inputs_text.length, Object.keys(inputs_pairs).length]).toEqual([MAX_TEXT, 200]);
  });

  it('from few bytes below long names are pairs of about six times their size', () => {
    const name = 'n'.repeat(240);
    const flat = { [name]: Array.from({ length: 200 }, () => 1) };
    const deep = { a: { [name.slice(0, 200)]: { b: Object.fromEntries(flat[name]!.entries()) } } };
    for (const value of [flat, deep]) {
      const { inputs_pairs = {} } = deriveValues('inputs', value);
      const [pairs, payload] = [JSON.stringify(inputs_pairs).length, JSON.stringify(value).length];
      expect(Object.keys(inputs_pairs).length).toBeGreaterThan(5);
      expect(pairs).toBeLessThan(1_500 + 6 * payload);
    }
  });

  it('from messages as clients send them are all of 200 pairs', () => {
    const message = {
      id: ['langchain', 'schema', 'AIMessage'],
      kwargs: { content: 'Hello there', type: 'ai' },
    };
    const value = { messages: [Array.from({ length: 50 }, () => message)] };
    expect(Object.keys(deriveValues('inputs', value).inputs_pairs ?? {})).toHaveLength(200);
  });

  it('from extra are metadata, the thread and the usage', () => {
    const metadata = {
      conversation_id: 'c',
      thread_id: 't',
      usage_metadata: { input_tokens: 3, output_cost: '0.1' },
    };
    expect(deriveValues('extra', { metadata, runtime: {} })).toEqual({
      ...{ metadata, thread_id: 't' },
      usage_in_extra: {
        input_tokens: 3,
        total_tokens: 3,
        output_cost: '0.100000000',
        total_cost: '0.100000000',
      },
    });
    expect(deriveValues('extra', null)).toEqual({ metadata: {} });
  });

  it('from outputs is their usage, else that of the last message', () => {
    const of = (total_tokens: number): object => ({ usage_metadata: { total_tokens } });
    const usage = (value: unknown): unknown => deriveValues('outputs', value).usage_in_outputs;
    expect(usage({ ...of(1), messages: [of(2)] })).toEqual({ total_tokens: 1 });
    expect(usage({ messages: [of(2), of(3)] })).toEqual({ total_tokens: 3 });
    expect(usage({ messages: [of(2), {}] })).toBeUndefined();
    expect(
      usage({ usage_metadata: { input_tokens: -1, output_tokens: 1.5, total_cost: '1e9' } }),
    ).toBeUndefined();
  });

  it.each([
    [0.1, '0.100000000'],
    [1e-7, '0.000000100'],
    ['12345678.123456789', '12345678.123456789'],
    ['-0.5', '-0.500000000'],
  ])('from the cost %j is %s', (total_cost, expected) => {
    expect(deriveValues('outputs', { usage_metadata: { total_cost } }).usage_in_outputs).toEqual({
      total_cost: expected,
    });
  });

  it('from events is the time of the first token', () => {
    const events = [
      { name: 'start' },
      { name: 'new_token', time: '2026-11-24T00:00:00Z' },
      { name: 'new_token', time: 'x' },
    ];
    expect(deriveValues('events', events)).toEqual({ first_token_time: '2026-11-24T00:00:00.000000Z' });
    expect(deriveValues('events', 'x')).toEqual({});
  });

  it('from an error is its text', () => {
    const { error = '' } = deriveValues('error', `a\0${'x'.repeat(MAX_TEXT)}`);
    expect([error.length, isStorable(error)]).toEqual([MAX_TEXT, true]);
    expect(deriveValues('error', { code: 1 })).toEqual({ error: '{"code":1}' });
  });
});
