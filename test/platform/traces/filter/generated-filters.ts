// Runs as clients send them, and filters of every operator and field, of values that come up in both.
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import type { Json, SentFeedback, SentRun } from './second-evaluator.ts';

const uuid = (n: number): string => `0192f0c1-6f2b-7000-8000-${String(n).padStart(12, '0')}`;
const PROJECTS = [uuid(1), uuid(2)] as const;
const EXAMPLES = [uuid(3), uuid(4)] as const;

const TEXTS = [
  '',
  'a',
  'b',
  'ab',
  'A',
  'aB%',
  'a_b',
  'x\\y',
  'say "hi"',
  "it's",
  'é',
  '𝒳',
  'a\0',
  '5',
  '5.0',
  '-1e2',
  'true',
  'null',
];
const text = fc.constantFrom(...TEXTS);
const KEYS = ['k', 'env', 'a.b', '', 'thread_id', 'K'];
const key = fc.constantFrom(...KEYS);
const NUMBERS = [0, 1, 5, -100, 0.5, 1e21, 12_345_678_901];
const number = fc.constantFrom(...NUMBERS);

const scalar = fc.oneof(text, number, fc.boolean(), fc.constant(null)) as fc.Arbitrary<Json>;
const listed = fc.array(scalar, { maxLength: 2 }) as fc.Arbitrary<Json>;
const object = fc.dictionary(
  key,
  fc.oneof(scalar, scalar, listed, fc.dictionary(key, scalar, { maxKeys: 2 })),
  {
    maxKeys: 3,
  },
) as fc.Arbitrary<{ readonly [name: string]: Json }>;
const payload = fc.oneof(fc.constant(undefined), scalar, object, object, listed) as fc.Arbitrary<
  Json | undefined
>;

const BASE = Date.UTC(2026, 2, 3, 12) * 1000;
const OFFSETS = [0, 1, 1_000_000, 1_500_000, 120_000_000, 200_000];
const tokens = fc.constantFrom(
  null,
  { prompt: 1, completion: 4, total: 5 },
  { prompt: 5, completion: 95, total: 100 },
);

const feedback: fc.Arbitrary<SentFeedback> = fc.record({
  key: fc.constantFrom('good', 'k'),
  score: fc.constantFrom(null, 0, 0.1, 1, 5),
  value: fc.oneof(scalar, fc.constant({ a: 1 })) as fc.Arbitrary<Json>,
  source: fc.constantFrom(null, 'api', 'app'),
});

const run = fc.record({
  session_id: fc.constantFrom(...PROJECTS),
  reference_example_id: fc.constantFrom(null, ...EXAMPLES),
  name: text,
  run_type: fc.constantFrom('llm', 'chain'),
  start: fc.constantFrom(...OFFSETS).map((offset) => BASE + offset),
  duration: fc.constantFrom(null, ...OFFSETS),
  error: fc.oneof(fc.constant(null), fc.constant(null), text),
  tags: fc.array(text, { maxLength: 2 }),
  metadata: object,
  inputs: payload,
  outputs: payload,
  tokens,
  cost: fc.constantFrom(null, 0, 0.1, 0.000000001, 5),
  feedback: fc.array(feedback, { maxLength: 2 }),
});

/** Traces of up to four runs, in the order of their runs. */
export const traces: fc.Arbitrary<readonly SentRun[]> = fc
  .array(run, { minLength: 1, maxLength: 4 })
  .map((all) => {
    const ids = all.map(() => randomUUID());
    return all.map(({ duration, ...one }, index) => ({
      ...one,
      id: ids[index] ?? '',
      trace_id: ids[0] ?? '',
      parent_run_id:
        index === 0 ? null : ((ids[index >> 1] === ids[index] ? ids[0] : ids[index >> 1]) ?? null),
      end: duration === null ? null : one.start + duration,
    }));
  });

const quoted = (value: string): string =>
  value.includes('"') || value.length % 2 === 0
    ? JSON.stringify(value)
    : `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
const quotedText = text.map(quoted);
const digits = fc.constantFrom(
  '0',
  '1',
  '5',
  '5.0',
  '-1e2',
  '0.5',
  '0.1',
  '1e21',
  '1e-9',
  '4.9999999',
  '100',
  '1e300',
);
const orNull = (values: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.oneof({ weight: 4, arbitrary: values }, { weight: 1, arbitrary: fc.constant('null') });

const equality = fc.constantFrom('eq', 'neq');
const ordering = fc.constantFrom('gt', 'gte', 'lt', 'lte');
const call = (op: fc.Arbitrary<string>, field: fc.Arbitrary<string>, value: fc.Arbitrary<string>) =>
  fc.tuple(op, field, value).map(([name, one, other]) => `${name}(${one}, ${other})`);
const listOf = (values: fc.Arbitrary<string>) =>
  fc.array(values, { maxLength: 3 }).map((all) => `[${all.join(', ')}]`);
const of = (...names: readonly string[]) => fc.constantFrom(...names);

/** Equality, order and lists of fields with values of one kind. */
const scalars = (field: fc.Arbitrary<string>, values: fc.Arbitrary<string>, isOrdered = true) =>
  fc.oneof(
    call(equality, field, orNull(values)),
    call(of('in'), field, listOf(values)),
    ...(isOrdered ? [call(ordering, field, values)] : []),
  );

const texts = of('name', 'error', 'run_type', 'status', 'thread_id');
const times = fc.constantFrom(...OFFSETS, 500_000).map((offset) => {
  const micros = BASE + offset;
  const whole = new Date(Math.floor(micros / 1e6) * 1000).toISOString().slice(0, 19);
  return `"${whole}.${String(micros % 1e6).padStart(6, '0')}${offset % 2 === 0 ? 'Z' : ''}"`;
});
const value = fc.oneof(quotedText, digits, of('true', 'false'));
const order = fc.oneof(quotedText, digits);
const parts = (field: fc.Arbitrary<string>) =>
  fc.oneof(
    call(equality, field, orNull(value)),
    call(of('in'), field, listOf(value)),
    call(ordering, field, order),
    call(of('search'), field, quotedText),
  );
const keys = fc.constantFrom(...KEYS, 'good', 'k.0', 'env.k').map(quoted);

/** Every field and every operator. */
const comparison: fc.Arbitrary<string> = fc.oneof(
  scalars(texts, fc.oneof(quotedText, of('"llm"', '"error"', '"pending"', '"success"'))),
  call(of('search'), texts, quotedText),
  scalars(
    of('session_id', 'reference_example_id', 'parent_run_id', 'trace_id', 'id'),
    fc.constantFrom(...PROJECTS, ...EXAMPLES).map((id) => `"${id.toUpperCase()}"`),
    false,
  ),
  scalars(of('start_time', 'end_time'), times),
  scalars(of('latency'), fc.oneof(digits, of('"1s"', '"1.5s"', '"200ms"', '"2m"', '"0.001ms"'))),
  scalars(of('total_tokens', 'prompt_tokens', 'completion_tokens', 'total_cost'), digits),
  call(equality, of('is_root'), orNull(of('true', 'false'))),
  call(equality, of('execution_order'), of('1')),
  call(of('has', 'search'), of('tags'), quotedText),
  object.map((one) => `has(metadata, ${quoted(JSON.stringify(one))})`),
  call(of('search'), of('metadata', 'inputs', 'outputs'), quotedText),
  call(equality, of('metadata', 'inputs', 'outputs'), of('null')),
  quotedText.map((one) => `search(${one})`),
  scalars(of('feedback_key'), keys),
  scalars(of('feedback_score'), digits),
  scalars(of('feedback_source'), of('"api"', '"app"')),
  scalars(of('metadata_key', 'input_key', 'output_key'), keys),
  parts(of('metadata_value', 'input_value', 'output_value', 'feedback_value')),
);

/** Conditions on one pair. */
const pair: fc.Arbitrary<string> = of('metadata', 'input', 'output', 'feedback').chain((family) =>
  fc
    .tuple(call(equality, of(`${family}_key`), keys), parts(of(`${family}_value`)))
    .map(([first, second]) => `and(${first},${second})`),
);

export const filters: fc.Arbitrary<string> = fc.letrec<{ readonly filter: string }>((tie) => ({
  filter: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    comparison,
    pair,
    fc
      .tuple(of('and', 'or', 'and', 'or'), fc.array(tie('filter'), { minLength: 1, maxLength: 3 }))
      .map(([op, all]) => `${op}(${all.join(', ')})`),
    tie('filter').map((one) => `not(${one})`),
  ),
})).filter;
