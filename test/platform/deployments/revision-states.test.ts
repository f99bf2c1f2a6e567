import { describe, expect, it } from 'vitest';
import {
  canMove,
  endOfUnwanted,
  isTerminal,
  pendingStatuses,
  revisionStatuses,
  type RevisionStatus,
} from '../../../src/platform/deployments/revision-states.ts';

const BUILT: readonly RevisionStatus[] = [
  ...(['CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING'] as const),
  ...(['AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'] as const),
];
const IMAGE: readonly RevisionStatus[] = ['CREATING', 'QUEUED', 'AWAITING_DEPLOY', 'DEPLOYING', 'DEPLOYED'];

describe('a revision', () => {
  it.each([
    ['from a source', BUILT],
    ['from an image, or from a build that is kept', IMAGE],
  ])('%s moves to DEPLOYED', (_, path) => {
    for (const [at, from] of path.slice(0, -1).entries())
      expect([from, canMove(from, path[at + 1] ?? from)]).toEqual([from, true]);
  });

  it('never leaves a terminal state, and never moves to where it is', () => {
    const terminal = revisionStatuses.filter(isTerminal);
    const ends = ['CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED', 'DEPLOYED', 'SKIPPED', 'INTERRUPTED'];
    expect(terminal).toEqual(ends);
    for (const from of terminal) expect(revisionStatuses.filter((to) => canMove(from, to))).toEqual([]);
    expect(revisionStatuses.filter((one) => canMove(one, one))).toEqual([]);
    expect([...pendingStatuses, ...terminal].toSorted()).toEqual(revisionStatuses.toSorted());
  });

  it('is built before it is deployed, and has begun to be deployed before it is', () => {
    const before = (to: RevisionStatus) => revisionStatuses.filter((from) => canMove(from, to));
    expect(before('BUILDING')).toEqual(['AWAITING_BUILD']);
    expect(before('DEPLOYING')).toEqual(['AWAITING_DEPLOY']);
    expect(before('DEPLOYED')).toEqual(['DEPLOYING', 'UNKNOWN']);
    expect(before('UNKNOWN')).toEqual(['DEPLOYING']);
  });
});

describe('a revision that is not wanted any more', () => {
  it.each([
    ['CREATING', 'SKIPPED'],
    ['QUEUED', 'SKIPPED'],
    ['AWAITING_BUILD', 'SKIPPED'],
    ['BUILDING', 'INTERRUPTED'],
    ['AWAITING_DEPLOY', 'SKIPPED'],
    ['DEPLOYING', 'INTERRUPTED'],
    ['UNKNOWN', 'INTERRUPTED'],
  ] as const)('ends from %s as %s', (from, to) => {
    expect(endOfUnwanted(from, { wasBuilt: false })).toBe(to);
    expect(canMove(from, to)).toBe(true);
  });

  it('ends as INTERRUPTED where it was built before it waited', () => {
    expect(endOfUnwanted('AWAITING_DEPLOY', { wasBuilt: true })).toBe('INTERRUPTED');
    expect(canMove('AWAITING_DEPLOY', 'INTERRUPTED')).toBe(true);
  });

  it('stays where it has ended', () => {
    for (const status of revisionStatuses.filter(isTerminal))
      expect(endOfUnwanted(status, { wasBuilt: true })).toBeUndefined();
  });
});
