import { describe, expect, it } from 'vitest';
import {
  checkEnds,
  checkOrder,
  checkRuns,
  checkTakeovers,
  checkThread,
  findTakeovers,
} from './agent-checks.ts';
import type { Change } from './agent-changes.ts';
import { ASK, entryOf, RESUMED, WORK } from './agent-deployment.ts';
import type { Job } from './agent-ledger.ts';

let seq = 0;
function change(status: string, more: Partial<Change> = {}): Change {
  seq += 1;
  return {
    ...{ seq, atMs: seq, life: 'a1', kind: 'UPDATE', runId: 'r1', threadId: 't', position: 1 },
    ...{ job: 'j1', status, attempt: 1, losses: 0, ...more },
  };
}

function job(more: Partial<Job> = {}): Job {
  return {
    ...{ name: 'j1', user: 'u', kind: 'work', threadId: 't', how: 'wait', runId: 'r1' },
    ...{ outcome: 'accepted', mayBeGone: false, mayBeInterrupted: false, ...more },
  };
}

const all = WORK.flat().map((node) => entryOf('j1', node, 'u'));
const created = (): Change => change('pending', { kind: 'INSERT' });

describe('a run', () => {
  it('ends once', () => {
    const ended = [created(), change('running'), change('success')];
    expect(checkEnds(ended)).toEqual([]);
    expect(checkEnds([...ended, change('success', { kind: 'DELETE' })])).toEqual([]);
    expect(checkEnds(ended.slice(0, 2))).toEqual([expect.stringMatching(/^not ended/)]);
    expect(checkEnds([...ended, change('running')])).toEqual([expect.stringMatching(/^ended twice/)]);
  });

  it('is not claimed before one that was created earlier has ended', () => {
    const later = { runId: 'r2', job: 'j2', position: 2 };
    const both = [created(), change('pending', { kind: 'INSERT', ...later })];
    const inOrder = [...both, change('running'), change('success'), change('running', later)];
    expect(checkOrder(inOrder)).toEqual([]);
    expect(checkOrder([...both, change('running', later)])).toEqual([
      expect.stringMatching(/j2 was claimed/),
    ]);
  });

  it('of a killed process is free in time, in which some process runs', () => {
    const life = { life: 'b1' };
    const changes = [change('running', { atMs: 1_000 }), change('pending', { atMs: 22_000, ...life })];
    const deaths = new Map([['a1', 2_000]]);
    const find = (untilMs: number) =>
      findTakeovers(changes, {
        deaths,
        spans: [
          { fromMs: 0, untilMs },
          { fromMs: 20_000, untilMs: 30_000 },
        ],
      });
    expect(find(30_000)).toEqual([{ runId: 'r1', freeMs: 20_000, claimedMs: undefined }]);
    expect(checkTakeovers(find(30_000))).toHaveLength(1);
    // From when a process was there again.
    expect(find(12_000)).toMatchObject([{ freeMs: 2_000 }]);
    expect(checkTakeovers(find(12_000))).toEqual([]);
  });

  it('of a stopped process is free in time, and its own when it has gone on', () => {
    const taken = [change('running', { atMs: 1_000 }), change('pending', { atMs: 13_000, life: 'b1' })];
    const stops = [{ life: 'a1', fromMs: 2_000, untilMs: 15_000 }];
    const spans = [{ fromMs: 0, untilMs: 60_000 }];
    const lives = { deaths: new Map(), stops, spans };
    expect(findTakeovers(taken, lives)).toEqual([{ runId: 'r1', freeMs: 11_000, claimedMs: undefined }]);
    const kept = [change('running', { atMs: 1_000 }), change('success', { atMs: 16_000 })];
    expect(findTakeovers(kept, lives)).toEqual([]);
  });

  it.each<[string, Partial<Job>, readonly Change[]]>([
    ['was refused', { outcome: 'refused' }, [created()]],
    ['was never there', {}, []],
    ['was created twice', {}, [created(), created(), change('success')]],
    ['is gone', {}, [created(), change('pending', { kind: 'DELETE' })]],
    ['was interrupted', {}, [created(), change('interrupted')]],
    ['ended with an error after 2 losses', {}, [created(), change('error', { losses: 2 })]],
    ['its client got RunLost', { error: 'RunLost' }, [created(), change('success')]],
    ['its client got', { result: all.slice(1) }, [created(), change('success')]],
    ['its client got', { threadId: undefined }, [created(), change('running', { kind: 'DELETE' })]],
  ])('%s: a violation', (what, given, changes) => {
    expect(checkRuns([job(given)], changes)).toEqual([expect.stringContaining(what)]);
  });

  it.each<[string, Partial<Job>, readonly Change[]]>([
    ['successful', { result: ['j0', ...all] }, [created(), change('success')]],
    ['without a response, and not there', { outcome: 'lost' }, []],
    [
      'without a thread, and without a response',
      { threadId: undefined, outcome: 'lost' },
      [created(), change('running', { kind: 'DELETE' })],
    ],
    ['removed as asked', { mayBeGone: true }, [created(), change('pending', { kind: 'DELETE' })]],
    ['lost three times', {}, [created(), change('error', { losses: 3 })]],
    [
      'without a thread',
      { threadId: undefined, result: all },
      [created(), change('running', { kind: 'DELETE' })],
    ],
  ])('%s: none', (_, given, changes) => expect(checkRuns([job(given)], changes)).toEqual([]));
});

describe('a thread', () => {
  const other = job({ name: 'j2' });
  const runs = (...statuses: string[]) =>
    statuses.map((status, index) => ({ job: `j${index + 1}`, threadId: 't', status, losses: 0 }));
  const check = (steps: readonly string[], ...statuses: string[]) =>
    checkThread('t', { steps, runs: runs(...statuses), jobs: [job(), other] });
  const ofOther = WORK.flat().map((node) => entryOf('j2', node, 'u'));

  it('has the steps of its runs, and whole supersteps of those that were ended', () => {
    expect(check([...all, ...ofOther], 'success', 'success')).toEqual([]);
    expect(check([...all.slice(0, 5), ...ofOther], 'interrupted', 'success')).toEqual([]);
    expect(check(ofOther, 'error', 'success')).toEqual([]);
  });

  it.each<[string, readonly string[]]>([
    ['a lost step', all.filter((_, index) => index !== 1)],
    ['a doubled step', all.toSpliced(2, 0, all[1] ?? '')],
    ['a lost branch', all.filter((_, index) => index !== 3)],
    ['another order of runs', [...ofOther, ...all]],
    ['another user', all.map((entry) => entry.replaceAll('|u', '|v'))],
    ['no step', []],
  ])('%s is a violation', (_, steps) => {
    const isBoth = steps.length > all.length + 1;
    expect(check(steps, 'success', ...(isBoth ? ['success'] : []))).toHaveLength(1);
  });

  it('half of a superstep is a violation', () => {
    expect(check(all.slice(0, 3), 'interrupted')).toEqual([expect.stringMatching(/steps of no run/)]);
  });

  it('that asked goes on with the run that resumed it', () => {
    const asked = ASK.flat().map((node) => entryOf('j1', node, 'u'));
    const resumed = RESUMED.flat().map((node) => entryOf('j2', node, 'u'));
    const jobs = [job({ kind: 'ask' }), job({ name: 'j2', kind: 'resume' })];
    const given = { runs: runs('success', 'success'), jobs };
    expect(checkThread('t', { ...given, steps: [...asked, ...resumed] })).toEqual([]);
    expect(checkThread('t', { ...given, steps: asked })).toHaveLength(1);
  });
});
