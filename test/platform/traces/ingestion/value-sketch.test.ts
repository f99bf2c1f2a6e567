import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ValueSketch } from '../../../../src/platform/traces/ingestion/value-sketch.ts';
import { type DerivedField, deriveValues } from '../../../../src/platform/traces/runs/run-derivation.ts';
import { runs } from '../../../support/run-size.ts';

function sketch(field: DerivedField, text: string, pieceBytes = 65_536): unknown {
  const bytes = Buffer.from(text);
  const made = new ValueSketch(field);
  for (let at = 0; at < bytes.length; at += pieceBytes) made.push(bytes.subarray(at, at + pieceBytes));
  return made.end();
}

const derived = (field: DerivedField, text: string): unknown => deriveValues(field, sketch(field, text));

describe('the sketch of a value', () => {
  it('leads to the same columns as the value itself, for every field and however the bytes are cut', () => {
    const name = fc.constantFrom(
      'usage_metadata',
      'messages',
      'metadata',
      'name',
      'time',
      'input_tokens',
      'a',
      '',
    );
    const scalar = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 8 }),
      fc.constantFrom('new_token', '2026-01-01T00:00:00Z', '\ud800', '\\', '"'),
      ...[fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)],
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'medium' },
        scalar,
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(fc.oneof(name, fc.string({ maxLength: 5 })), tie('value'), { maxKeys: 4 }),
      ),
    }));
    const field = fc.constantFrom<DerivedField>('inputs', 'outputs', 'extra', 'events', 'error');
    fc.assert(
      fc.property(field, value, fc.integer({ min: 1, max: 50 }), (of, given, pieceBytes) => {
        const text = JSON.stringify(given);
        expect(deriveValues(of, sketch(of, text, pieceBytes))).toEqual(deriveValues(of, JSON.parse(text)));
      }),
      { numRuns: runs(200) },
    );
  });

  it('finds tokens behind everything else, of outputs themselves or of their last message', () => {
    const noise = Array.from({ length: 40_000 }, (_, at) => ({ at, content: 'x' }));
    const usage = { input_tokens: 1, output_tokens: 2 };
    const found = { usage_in_outputs: { ...usage, total_tokens: 3 } };
    const message = { content: 'y', usage_metadata: usage };
    expect(derived('outputs', JSON.stringify({ noise, usage_metadata: usage }))).toMatchObject(found);
    expect(derived('outputs', JSON.stringify({ noise, messages: [{}, message] }))).toMatchObject(found);
    expect(derived('outputs', JSON.stringify({ messages: [...noise, message] }))).toMatchObject(found);
    expect(derived('outputs', JSON.stringify({ messages: [...noise, message, {}] }))).not.toHaveProperty(
      'usage_in_outputs',
    );
    expect(derived('outputs', JSON.stringify({ messages: [message, ...noise, 1] }))).not.toHaveProperty(
      'usage_in_outputs',
    );
  });

  it('finds the first event of a token and the metadata behind everything else', () => {
    const noise = Array.from({ length: 40_000 }, (_, at) => ({ name: 'end', kwargs: { at } }));
    const token = { kwargs: { name: 'x' }, name: 'new_token', time: '2026-01-01T00:00:00Z' };
    const later = { name: 'new_token', time: '2026-01-02T00:00:00Z' };
    expect(derived('events', JSON.stringify([...noise, token, later, ...noise]))).toEqual({
      first_token_time: '2026-01-01T00:00:00.000000Z',
    });
    expect(derived('extra', JSON.stringify({ noise, metadata: { thread_id: 't' } }))).toMatchObject({
      metadata: { thread_id: 't' },
      thread_id: 't',
    });
  });

  it('keeps the beginning of a long text, cut between characters and escapes', () => {
    for (const unit of ['\u{1f600}', '\\', '\0', 'a\\u0041']) {
      for (const shift of ['', 'x', 'xyz']) {
        const text = JSON.stringify({
          first: shift + unit.repeat(Math.ceil(420_000 / (JSON.stringify(unit).length - 2))),
          second: 'found',
        });
        const { inputs_text: searched = '', inputs_pairs: pairs } = derived('inputs', text) as {
          inputs_text?: string;
          inputs_pairs?: Record<string, string>;
        };
        const whole = deriveValues('inputs', JSON.parse(text));
        expect(searched.slice(0, 60_000)).toBe(whole.inputs_text?.slice(0, 60_000));
        expect(pairs).toEqual(whole.inputs_pairs);
      }
    }
  });

  it('keeps little of many long texts and names, and finds tokens behind them', () => {
    const texts = Array.from({ length: 500 }, () => 'x'.repeat(6_000));
    const names = Object.fromEntries(texts.map((_, at) => [`${'é'.repeat(500)}${at}`, at]));
    for (const noise of [texts, Array.from({ length: 8 }, () => names)]) {
      const outputs = { noise, usage_metadata: { input_tokens: 1 } };
      const kept = sketch('outputs', JSON.stringify(outputs));
      expect(JSON.stringify(kept).length).toBeLessThan(1_900_000);
      expect(kept).toMatchObject({ usage_metadata: { input_tokens: 1 } });
      const extra = sketch('extra', JSON.stringify({ metadata: { noise } }));
      expect(JSON.stringify(extra).length).toBeLessThan(1_900_000);
    }
  });

  it('reads a text that is cut behind many replacement characters in linear time', () => {
    const text = JSON.stringify(`${'\ufffd'.repeat(133_000)}${'x'.repeat(10_000)}`);
    const begun = performance.now();
    expect(sketch('inputs', text)).toHaveLength(133_999);
    expect(performance.now() - begun).toBeLessThan(2_000);
  });

  it('throws for what is no JSON, also behind what it keeps', () => {
    for (const text of [`{"a":[${'1,'.repeat(50_000)}]}`, `["${'x'.repeat(500_000)}", 01]`, '{"a":1'])
      expect(() => sketch('inputs', text)).toThrow(/./);
  });

  it('of a million values, or of a deep one, is small', () => {
    for (const text of [`[${'[],'.repeat(1_000_000)}0]`, `${'['.repeat(90_000)}${']'.repeat(90_000)}`]) {
      expect(JSON.stringify(sketch('outputs', text)).length).toBeLessThan(500_000);
    }
  });
});
