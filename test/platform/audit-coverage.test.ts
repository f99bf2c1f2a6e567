import { describe, expect, it } from 'vitest';
import { type Coverage, findUncompared } from '../../src/platform/audit-coverage.ts';

const nowMs = Date.UTC(2030, 0);
const HOUR_MS = 60 * 60 * 1000;
const chain = { organizationId: 'one', isStored: true, firstMs: nowMs - 2 * HOUR_MS, checkpoints: 1 };
const other = { ...chain, organizationId: 'two', checkpoints: 0 };
const complete: Coverage = {
  chains: [chain],
  unknownKeys: 0,
  keys: 1,
  location: '/data/checkpoints.jsonl',
  organizationId: undefined,
  nowMs,
};

describe('a verification', () => {
  it('is complete when every chain has a checkpoint', () => {
    expect(findUncompared(complete)).toEqual([]);
  });

  it('is complete while a new organization waits for its first checkpoint', () => {
    const young = { ...other, firstMs: nowMs - HOUR_MS / 2 };
    expect(findUncompared({ ...complete, chains: [chain, young] })).toEqual([]);
  });

  it('is complete when all events were removed and the log says so', () => {
    const gone = { ...chain, isStored: false, firstMs: undefined };
    expect(findUncompared({ ...complete, chains: [gone] })).toEqual([]);
  });

  it.each<[string, Partial<Coverage>, RegExp]>([
    ['the log is empty', { chains: [] }, /has no events$/],
    [
      'the organization is unknown',
      { organizationId: 'x', chains: [{ ...other, organizationId: 'x', isStored: false }] },
      /has no events of the organization x$/,
    ],
    ['no key was given', { keys: 0 }, /no public key/],
    ['a key was not given', { unknownKeys: 2 }, /^2 other keys signed/],
    ['there is no checkpoint', { chains: [other] }, /none in \/data\/checkpoints\.jsonl$/],
    ['one organization has none', { chains: [chain, other] }, /of the organization two in/],
    ['the times of one were removed', { chains: [chain, { ...other, firstMs: 0 }] }, /organization two in/],
  ])('has compared too little when %s', (_, change, expected) => {
    const reasons = findUncompared({ ...complete, ...change });
    expect(reasons).toHaveLength(1);
    expect(reasons[0]).toMatch(expected);
  });
});
