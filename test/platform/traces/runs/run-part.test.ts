import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bitOf,
  mergeParts,
  RUN_FIELDS,
  runFieldNames,
  type RunPart,
} from '../../../../src/platform/traces/runs/run-part.ts';

const start = (rank: 0 | 1 | 2) => ({
  ...{
    rank,
    start_time: `2026-11-20T00:00:0${rank}.000000Z`,
    trace_id: 't',
    parent_run_id: null,
    parent_run_ids: [],
  },
  dotted_order: String(rank),
});

/** A part with its own value in each field that it brings; the values say whose they are. */
const partBy = (source: 'post' | 'patch'): fc.Arbitrary<RunPart> =>
  fc
    .record({
      fields: fc.subarray([...runFieldNames]),
      startRank: fc.constantFrom(0 as const, 1 as const, 2 as const),
      projectRank: fc.constantFrom(0 as const, source === 'post' ? (2 as const) : (1 as const)),
    })
    .map(({ fields, startRank, projectRank }) => {
      const given = fields.reduce((bits, field) => bits | bitOf(field), 0);
      const columns = fields.flatMap((field) => RUN_FIELDS[field]);
      return {
        ...{
          id: 'run',
          project: { rank: projectRank, name: projectRank === 0 ? 'default' : source },
          start: start(startRank),
          given,
        },
        patched: source === 'patch' ? given : 0,
        values: Object.fromEntries(columns.map((column) => [column, `${column} of the ${source}`])),
      };
    });

describe('the parts of a run', () => {
  it('end alike whether the POST or the PATCH comes first, however often each is sent', () => {
    fc.assert(
      fc.property(partBy('post'), partBy('patch'), (post, patch) => {
        const merged = mergeParts(post, patch);
        expect(mergeParts(patch, post)).toEqual(merged);
        for (const again of [post, patch]) expect(mergeParts(merged, again)).toEqual(merged);
      }),
    );
  });

  it('have the values of the PATCH where it brings a field, and of the POST elsewhere', () => {
    fc.assert(
      fc.property(partBy('post'), partBy('patch'), (post, patch) => {
        const { values } = mergeParts(post, patch);
        expect(values).toEqual({ ...post.values, ...patch.values });
      }),
    );
  });

  it('replace a field as a whole', () => {
    const post = {
      given: bitOf('outputs'),
      patched: 0,
      values: { outputs_text: 'a', usage_in_outputs: { total_tokens: 1 } },
    };
    const patch = { given: bitOf('outputs'), patched: bitOf('outputs'), values: { outputs_text: 'b' } };
    const shared = { id: 'run', project: { rank: 0, name: 'default' } as const, start: start(2) };
    expect(mergeParts({ ...shared, ...post }, { ...shared, ...patch }).values).toEqual({ outputs_text: 'b' });
  });
});
