// The filter language: tables of meanings and of issues with their positions, limits, and properties of generated texts.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fieldNames } from '../../../../src/platform/traces/filter/fields.ts';
import { parseFilter } from '../../../../src/platform/traces/filter/parser.ts';
import { runs } from '../../../support/run-size.ts';

const ID = '0192f0c1-6f2b-7000-8000-00000000000a';

function meaningOf(text: string): unknown {
  const parsed = parseFilter(text);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.filter;
}

function issuesOf(text: string): readonly string[] {
  const parsed = parseFilter(text);
  return parsed.ok ? [] : parsed.issues.map(({ at, msg }) => `${at}: ${msg}`);
}

const text = (value: string) => ({ type: 'text', text: value });
const number = (decimal: string) => ({ type: 'number', decimal });
const column = (name: string, is: string, value: unknown) => ({
  ...{ kind: 'column', column: name },
  test: { is, value },
});
const some = (
  family: string,
  ...tests: readonly (readonly [part: string, is: string, value: unknown])[]
) => ({
  ...{ kind: 'some', family },
  tests: tests.map(([part, is, value]) => ({ part, test: { is, value } })),
});
const not = (filter: unknown) => ({ kind: 'not', filter });

describe('a filter', () => {
  const rows: readonly [filter: string, meaning: unknown][] = [
    ['eq(run_type, "llm")', column('run_type', 'equal', text('llm'))],
    [" eq ( run_type ,\n'llm' ) ", column('run_type', 'equal', text('llm'))],
    ['neq(error, null)', column('error', 'unequal', null)],
    ['eq(is_root, true)', column('is_root', 'equal', { type: 'flag', flag: true })],
    ['eq(execution_order, 1)', column('is_root', 'equal', { type: 'flag', flag: true })],
    ['neq(execution_order, 1)', column('is_root', 'unequal', { type: 'flag', flag: true })],
    [`eq(id, "${ID.toUpperCase()}")`, column('id', 'equal', text(ID))],
    ['gt(latency, 5)', column('latency', 'more', number('5'))],
    ['gt(latency, "5s")', column('latency', 'more', number('5.000000000000'))],
    ['gte(latency, "200ms")', column('latency', 'at_least', number('0.200000000000'))],
    ['lt(latency, "2m")', column('latency', 'less', number('120.000000000000'))],
    ['lte(latency, "1.5m")', column('latency', 'at_most', number('90.000000000000'))],
    ['gt(total_cost, 0.0000000012345678901)', column('total_cost', 'more', number('0.0000000012345678901'))],
    ['gt(total_tokens, -1e3)', column('total_tokens', 'more', number('-1e3'))],
    [
      'gt(start_time, "2026-01-31T12:00:00.123456Z")',
      column('start_time', 'more', { type: 'time', micros: Date.UTC(2026, 0, 31, 12) * 1000 + 123_456 }),
    ],
    [
      'lt(end_time, "2026-01-31T12:00:00.1234569+02:00")',
      column('end_time', 'less', { type: 'time', micros: Date.UTC(2026, 0, 31, 10) * 1000 + 123_456 }),
    ],
    [
      'lt(end_time, "2026-01-31")',
      column('end_time', 'less', { type: 'time', micros: Date.UTC(2026, 0, 31) * 1000 }),
    ],
    [
      'lt(end_time, "2026-01-31 07:30-0530")',
      column('end_time', 'less', { type: 'time', micros: Date.UTC(2026, 0, 31, 13) * 1000 }),
    ],
    [
      'lt(start_time, "1900-01-01T00:00:00.5Z")',
      column('start_time', 'less', { type: 'time', micros: Date.UTC(1900) * 1000 + 500_000 }),
    ],
    [
      'in(name, ["a", \'b\'])',
      { kind: 'column', column: 'name', test: { is: 'among', values: [text('a'), text('b')] } },
    ],
    ['in(name, [])', { kind: 'column', column: 'name', test: { is: 'among', values: [] } }],
    ['has(tags, "x")', { kind: 'tag', is: 'equal', text: 'x' }],
    ['search(tags, "x")', { kind: 'tag', is: 'containing', text: 'x' }],
    [`has(metadata, '{"k":"v"}')`, { kind: 'metadata', contained: '{"k":"v"}' }],
    ['search(inputs, "x")', { kind: 'json', column: 'inputs', text: 'x' }],
    ['eq(outputs, null)', { kind: 'absent', column: 'outputs' }],
    ['neq(outputs, null)', not({ kind: 'absent', column: 'outputs' })],
    ['search("x")', { kind: 'search', text: 'x' }],
    ['search(name, "x")', { kind: 'column', column: 'name', test: { is: 'containing', text: 'x' } }],
    [String.raw`eq(name, "\"\\\/\b\f\n\r\tA'")`, column('name', 'equal', text('"\\/\b\f\n\r\tA\''))],
    [String.raw`eq(name, 'it\'s "x"')`, column('name', 'equal', text('it\'s "x"'))],
    ['and(eq(name, "a"))', column('name', 'equal', text('a'))],
    ['not(eq(name, "a"))', not(column('name', 'equal', text('a')))],
    [
      'and(eq(name, "a"), or(eq(status, "error"), eq(name, "b")))',
      {
        kind: 'all',
        filters: [
          column('name', 'equal', text('a')),
          {
            kind: 'any',
            filters: [column('status', 'equal', text('error')), column('name', 'equal', text('b'))],
          },
        ],
      },
    ],
  ];
  it.each(rows)('%s', (filter, meaning) => expect(meaningOf(filter)).toEqual(meaning));
});

describe('conditions on parts', () => {
  const rows: readonly [filter: string, meaning: unknown][] = [
    ["eq(metadata_key, 'k')", some('metadata', ['key', 'equal', text('k')])],
    ["neq(metadata_key, 'k')", not(some('metadata', ['key', 'equal', text('k')]))],
    [
      "and(eq(metadata_key,'k'), eq(metadata_value,'v'))",
      some('metadata', ['key', 'equal', text('k')], ['value', 'equal', text('v')]),
    ],
    [
      "and(eq(input_key,'k'), neq(input_value, 1))",
      some('input', ['key', 'equal', text('k')], ['value', 'unequal', number('1')]),
    ],
    [
      "and(neq(output_key,'k'), eq(output_value, true))",
      some('output', ['key', 'unequal', text('k')], ['value', 'equal', { type: 'flag', flag: true }]),
    ],
    [
      "and(neq(output_key,'k'), neq(output_value,'v'))",
      {
        kind: 'all',
        filters: [
          not(some('output', ['key', 'equal', text('k')])),
          not(some('output', ['value', 'equal', text('v')])),
        ],
      },
    ],
    [
      'and(eq(feedback_key, "k"), gt(feedback_score, 0.5), lt(feedback_score, 1))',
      some(
        'feedback',
        ['key', 'equal', text('k')],
        ['score', 'more', number('0.5')],
        ['score', 'less', number('1')],
      ),
    ],
    [
      'and(eq(feedback_key, "k"), eq(metadata_key, "k"))',
      {
        kind: 'all',
        filters: [
          some('feedback', ['key', 'equal', text('k')]),
          some('metadata', ['key', 'equal', text('k')]),
        ],
      },
    ],
    [
      "or(eq(metadata_key,'k'), eq(metadata_value,'v'))",
      {
        kind: 'any',
        filters: [
          some('metadata', ['key', 'equal', text('k')]),
          some('metadata', ['value', 'equal', text('v')]),
        ],
      },
    ],
    ['neq(feedback_score, null)', some('feedback', ['score', 'unequal', null])],
    [
      'in(metadata_key, ["session_id", "thread_id"])',
      {
        ...{ kind: 'some', family: 'metadata' },
        tests: [{ part: 'key', test: { is: 'among', values: [text('session_id'), text('thread_id')] } }],
      },
    ],
  ];
  it.each(rows)('%s', (filter, meaning) => expect(meaningOf(filter)).toEqual(meaning));
});

describe('an invalid filter', () => {
  const rows: readonly [filter: string, ...issues: string[]][] = [
    ['', '0: The filter ends here, and is not complete'],
    ['   ', '3: The filter ends here, and is not complete'],
    ['"x"', '0: Expected an operator with its arguments'],
    ['eq', '0: Expected an operator with its arguments'],
    ['eq(name, "a"', '12: The filter ends here: ) is missing'],
    ['eq(name, "a"]', '12: Expected , or )'],
    ['eq(name "a")', '8: Expected , or )'],
    ['eq(name, "a") x', '14: Expected the end of the filter'],
    ['eq(name, "a"))', '13: Expected the end of the filter'],
    ['eq(name, "a",)', '13: Expected an operator, a field or a value'],
    ['eq(name, "a)', '9: This quote is not closed'],
    [
      String.raw`eq(name, "a\x")`,
      String.raw`11: Unknown escape: a backslash is written \\, other characters as in JSON`,
    ],
    [
      String.raw`eq(name, "\u12")`,
      String.raw`10: Unknown escape: a backslash is written \\, other characters as in JSON`,
    ],
    ['eq(name; "a")', '7: Expected a name, a text in quotes, a number or one of ( ) [ ] and ,'],
    ['eq(total_tokens, 01)', '17: Expected a name, a text in quotes, a number or one of ( ) [ ] and ,'],
    ['eq(total_tokens, 1x)', '17: Expected a name, a text in quotes, a number or one of ( ) [ ] and ,'],
    ['in(name, [["a"]])', '10: A list holds texts, numbers, true and false'],
    ['in(name, [eq(name, "a")])', '10: A list holds texts, numbers, true and false'],
    ['in(name, [null])', '10: A list has no null: use eq(field, null)'],
    ['in(name, "a")', '9: Expected a list, such as ["a", "b"]'],
    ['eq(name, ["a"])', '9: Expected a value: a text in quotes, a number, true, false or null'],
    ['eq(name, b)', '9: Expected a value: a text in quotes, a number, true, false or null'],
    ['eq("name", "b")', '3: Expected the name of a field'],
    ['eq(nome, "b")', '3: Unknown field: see the fields of the filter language'],
    ['eq(constructor, "b")', '3: Unknown field: see the fields of the filter language'],
    ['like(name, "b")', '0: Unknown operator: use and, or, not, eq, neq, gt, gte, lt, lte, has, search, in'],
    ['eq(name)', '0: Expected two arguments: a field and a value'],
    ['eq(name, "a", "b")', '0: Expected two arguments: a field and a value'],
    ['search()', '0: Expected two arguments: a field and a value, or a text alone'],
    ['search(5)', '7: Expected a text in quotes'],
    ['and()', '0: Expected one argument or more'],
    ['not(eq(name, "a"), eq(name, "b"))', '0: Expected one argument: not(and(…)) for several'],
    ['and(name)', '4: Expected an operator with its arguments'],
    ['eq(id, "x")', '7: Expected a UUID in quotes'],
    ['gt(id, "x")', '0: This field has the operators eq, neq, in'],
    ['eq(name, 5)', '9: Expected a text in quotes'],
    ['eq(total_tokens, "5")', '17: Expected a number'],
    ['gt(total_tokens, 1e301)', '17: A number has at most 100 characters, and an exponent of at most 300'],
    ['gt(name, null)', '9: Only texts, numbers and times have an order'],
    ['eq(is_root, 1)', '12: Expected true or false'],
    ['gt(latency, "5h")', '12: Expected seconds as a number, or a duration such as "5s", "200ms" or "2m"'],
    ...[
      '2026-02-30',
      '2026-13-01',
      '1799-12-31',
      'now',
      '2026-01-01T25:00:00Z',
      '2026-01-01T10:00:00+99:00',
    ].map((time): [string, string] => [
      `gt(start_time, "${time}")`,
      '15: Expected a time in quotes, such as "2026-01-31T12:00:00Z", from 1800 to 2200',
    ]),
    ['eq(tags, "x")', '0: Tags have the operators has, search'],
    ['has(name, "x")', '0: This field has the operators eq, neq, in, gt, gte, lt, lte, search'],
    ['has(metadata, "x")', `14: Expected a JSON object in quotes, such as '{"key": "value"}'`],
    ["has(metadata, '[1]')", `14: Expected a JSON object in quotes, such as '{"key": "value"}'`],
    [
      `has(metadata, '{"a":${'['.repeat(32)}${']'.repeat(32)}}')`,
      '14: The object is nested deeper than 32 levels',
    ],
    [
      `has(metadata, '{"a":1e301}')`,
      '14: A number has at most 100 characters, and an exponent of at most 300',
    ],
    ['eq(inputs, "x")', '11: Expected null: use search for the content of this field'],
    [`has(inputs, '{}')`, '0: This field has the operators search, and eq and neq with null'],
    ['gt(metadata, 1)', '0: This field has the operators has, search, and eq and neq with null'],
    ['eq(metadata, 1)', '13: Expected null: use has or search for the content of this field'],
    ['gt(inputs, 1)', '0: This field has the operators search, and eq and neq with null'],
    ['eq(execution_order, 2)', '20: Expected 1'],
    [
      'and(eq(metadata_key,"a"), eq(metadata_key,"b"))',
      '26: A pair has one key: give each pair an `and` of its own within this one',
    ],
    [
      'and(eq(nome, 1), gt(id, 2), or(eq(name, 5), and()))',
      '7: Unknown field: see the fields of the filter language',
      '17: This field has the operators eq, neq, in',
      '40: Expected a text in quotes',
      '44: Expected one argument or more',
    ],
  ];
  it.each(rows)('%s', (filter, ...issues) => expect(issuesOf(filter)).toEqual(issues));

  it('names no part of the filter in its messages', () => {
    const secret = 'sk-0123456789abcdef';
    for (const filter of [
      `eq(${secret.replace('-', '_')}, 1)`,
      `eq(id, "${secret}")`,
      `${secret.replace('-', '_')}(id)`,
    ])
      expect(issuesOf(filter).join('\n')).not.toContain('0123456789');
  });
});

describe('a filter at a limit', () => {
  const nested = (depth: number): string =>
    `${'not('.repeat(depth - 1)}eq(name, "a")${')'.repeat(depth - 1)}`;
  const wide = (calls: number): string =>
    `or(${Array.from({ length: calls - 1 }, () => 'eq(name,"a")').join()})`;
  const listed = (items: number): string =>
    `in(name, [${Array.from({ length: items }, () => '"a"').join()}])`;
  const searched = (length: number): string => `search("${'a'.repeat(length)}")`;
  const long = (length: number): string => `eq(name, "${'a'.repeat(length - 12)}")`;

  it.each([
    ['depth', nested(32), nested(33), /in one another/],
    ['operators', wide(200), wide(201), /at most 200 operators/],
    ['list items', listed(1000), listed(1001), /at most 1000 values/],
    ['length', long(65_536), long(65_537), /at most 65536 characters/],
    ['a searched text', searched(1_000), searched(1_001), /at most 1000 characters/],
    [
      'searched texts together',
      `and(${[900, 900, 900, 900, 400].map(searched).join()})`,
      `and(${[900, 900, 900, 900, 401].map(searched).join()})`,
      /at most 4000 characters together/,
    ],
    [
      'searched texts of fields together',
      `and(search(name, "${'a'.repeat(1_000)}"), search(tags, "${'a'.repeat(1_000)}"),
        search(inputs, "${'a'.repeat(1_000)}"), search(metadata_value, "${'a'.repeat(1_000)}"))`,
      `and(search(name, "${'a'.repeat(1_000)}"), search(tags, "${'a'.repeat(1_000)}"), search("a"),
        search(inputs, "${'a'.repeat(1_000)}"), search(metadata_value, "${'a'.repeat(1_000)}"))`,
      /at most 4000 characters together/,
    ],
  ])('of %s is parsed, and refused beyond it', (_, last, beyond, message) => {
    expect(parseFilter(last).ok).toBe(true);
    expect(issuesOf(beyond)).toEqual([expect.stringMatching(message)]);
  });

  it.each(['(', '[', 'not(', 'in(name,[', '"', "'", '\\', 'a', '-', '1', '((((', 'and(', ',', ' ', '\0'])(
    'of %j alone is refused without a deep stack',
    (piece) => expect(parseFilter(piece.repeat(65_536 / piece.length)).ok).toBe(false),
  );
});

describe('a generated text', () => {
  const pieces = [
    ...['and(', 'or(', 'not(', 'eq(', 'neq(', 'gt(', 'in(', 'has(', 'search(', ')', ',', '[', ']', ' '],
    ...[
      '"x"',
      "'",
      '"',
      '\\',
      '1',
      '-',
      '1e9',
      'true',
      'null',
      `"${ID}"`,
      '\'{"a":1}\'',
      '"5s"',
      '"2026-01-01"',
    ],
    ...fieldNames,
  ];
  const texts = fc.oneof(
    fc.array(fc.constantFrom(...pieces), { maxLength: 30 }).map((some) => some.join('')),
    fc.string({ unit: 'binary', maxLength: 40 }),
  );

  it('has a meaning, or issues in the order of their positions within it', () => {
    fc.assert(
      fc.property(texts, (filter) => {
        const parsed = parseFilter(filter);
        if (parsed.ok) return;
        expect(parsed.issues.length).toBeGreaterThan(0);
        const places = parsed.issues.map(({ at }) => at);
        expect(places).toEqual(places.toSorted((a, b) => a - b));
        expect(places.every((at) => at >= 0 && at <= filter.length)).toBe(true);
      }),
      { numRuns: runs(100_000) },
    );
  });

  it('refuses a long object in linear time, whether its quotes are closed or not', () => {
    const begun = performance.now();
    for (const object of [`"${'\\\\"'.repeat(21_000)}`, `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`])
      expect(parseFilter(`has(metadata, '${object}')`)).toMatchObject({ ok: false, issues: [{ at: 14 }] });
    expect(performance.now() - begun).toBeLessThan(500);
  });

  it('keeps each text as JSON writes it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        expect(meaningOf(`eq(name, ${JSON.stringify(value)})`)).toEqual(column('name', 'equal', text(value)));
      }),
      { numRuns: runs(2000) },
    );
  });

  it('keeps each time to the microsecond', () => {
    const moments = fc.integer({ min: Date.UTC(1800), max: Date.UTC(2200) });
    fc.assert(
      fc.property(moments, fc.integer({ min: 0, max: 999 }), (millis, micros) => {
        const written = `${new Date(millis).toJSON().slice(0, -1)}${String(micros).padStart(3, '0')}Z`;
        const value = { type: 'time', micros: millis * 1000 + micros };
        expect(meaningOf(`gt(start_time, "${written}")`)).toEqual(column('start_time', 'more', value));
      }),
      { numRuns: runs(2000) },
    );
  });
});
