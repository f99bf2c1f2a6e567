import { describe, expect, it } from 'vitest';
import { createRandom } from '../../http1/mutation.ts';
import { checkTraces, type FoundRun, type Outcome } from './trace-checks.ts';
import { createTrace, type Kind, type Part } from './trace-runs.ts';

const random = createRandom(1);
const [run, second] = [createTrace('p', 1e12, random)[0], createTrace('p', 1e12, random)[0]];
if (run === undefined || second === undefined) throw new Error('a trace has a root');
const projects = new Map([['s', 'p']]);

/** As the API reads it once these parts are stored. */
function found(kinds: readonly Kind[], of: typeof run = run): FoundRun {
  const { session_name: _, tags = [], ...fields } = Object.assign({}, ...kinds.map((kind) => of?.[kind]));
  return { run_type: 'chain', ...fields, tags, id: of?.id ?? '', session_id: 's' };
}

const part = (kind: Kind, of: typeof run = run): Part => ({ kind, run: of as NonNullable<typeof run> });

function check(requests: readonly (readonly [Outcome, ...Part[]])[], runs: readonly FoundRun[]) {
  const sent = requests.map(([outcome, ...parts]) => ({ outcome, parts, attached: [] }));
  return checkTraces(sent, { runs, projects });
}

const both = [['accepted', part('post'), part('patch')]] as const;

describe('a run that was accepted', () => {
  it('is there with the fields of both parts', () => {
    expect(check(both, [found(['post', 'patch'])])).toEqual([]);
  });

  it.each<[string, readonly FoundRun[]]>([
    ['is gone', []],
    ['has no end', [found(['post'])]],
    ['has no beginning', [found(['patch'])]],
    ['has no inputs', [{ ...found(['post', 'patch']), inputs: null }]],
    ['has other outputs', [{ ...found(['post', 'patch']), outputs: {} }]],
    ['has the extra of its POST', [{ ...found(['post', 'patch']), extra: run.post['extra'] }]],
    ['is in no project', [{ ...found(['post', 'patch']), session_id: 'other' }]],
    ['has no tags', [{ ...found(['post', 'patch']), tags: [] }]],
    ['is there twice', [found(['post', 'patch']), found(['post', 'patch'])]],
  ])('%s: a violation', (_, runs) => {
    expect(check(both, runs)).not.toEqual([]);
  });
});

describe('a response that was lost', () => {
  const lost = [['unknown', part('post'), part('post', second)]] as const;

  it('is of a request that is there as a whole, or not at all', () => {
    expect(check(lost, [])).toEqual([]);
    expect(check(lost, [found(['post']), found(['post'], second)])).toEqual([]);
    expect(check(lost, [found(['post'])])).toEqual([expect.stringMatching(/^1 of 2 parts of one request/)]);
  });

  it('says nothing of parts that another request has stored', () => {
    expect(check([...lost, ['accepted', part('post')]], [found(['post'])])).toEqual([]);
  });
});

it('what was refused, or what nobody sent, is not there', () => {
  expect(check([['refused', part('post')]], [])).toEqual([]);
  expect(check([['refused', part('post')]], [found(['post'])])).toEqual([
    expect.stringMatching(/was refused, and is there/),
  ]);
  expect(check([], [found(['post'])])).toEqual([expect.stringMatching(/nobody sent/)]);
});

it('the attachment of a request that was accepted is there', () => {
  const sent = [{ outcome: 'accepted', parts: [part('post')], attached: [run.id] }] as const;
  const attached = { s3_urls: { 'attachment.note': {} } };
  expect(checkTraces(sent, { runs: [{ ...found(['post']), ...attached }], projects })).toEqual([]);
  expect(checkTraces(sent, { runs: [{ ...found(['post']), s3_urls: {} }], projects })).toEqual([
    expect.stringMatching(/attachment .* is missing/),
  ]);
});
