import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { signCheckpoint } from '../../../src/platform/audit/checkpoint.ts';
import { checkEnds, readCheckpoints, reportMissing } from '../../../src/platform/audit/checkpoint-book.ts';
import type { Finding } from '../../../src/platform/audit/finding.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const NOW_MS = 1_795_000_000_000;
const organization = '11111111-1111-4111-8111-111111111111';
const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const hash = 'ab'.repeat(32);

const checkpointAt = (seq: bigint, after: bigint, ageDays = 0) => ({
  ...{ organization, hash, seq, after },
  time: NOW_MS - ageDays * DAY_MS,
  since: NOW_MS - ageDays * DAY_MS,
  key: 'a',
});

function collect(work: (report: (finding: Finding) => void) => void): readonly string[] {
  const found: string[] = [];
  work(({ kind, seq, lastSeq }) =>
    found.push(`${kind} ${seq}${lastSeq === undefined ? '' : `..${lastSeq}`}`),
  );
  return found;
}

describe('the checkpoints of a sink', () => {
  it('are counted, sorted and stored once each; other lines are counted or reported', async () => {
    const lines = [5n, 2n, 5n].map((seq) => signCheckpoint(checkpointAt(seq, 0n), privateKey));
    const unknown = signCheckpoint(checkpointAt(7n, 0n), generateKeyPairSync('ed25519').privateKey);
    const forged = lines[0]?.replace('"seq":"5"', '"seq":"6"') ?? '';
    const found: string[] = [];
    const book = await readCheckpoints(
      (async function* () {
        yield* [...lines, 'cut off', unknown, forged];
      })(),
      [publicKey],
      ({ kind, seq }) => found.push(`${kind} ${seq}`),
    );
    expect([book.checkpoints, book.unreadable, book.organizations]).toEqual([3, 1, [organization]]);
    expect(book.of(organization).map(({ seq }) => seq)).toEqual([2n, 5n]);
    expect(book.of('another')).toEqual([]);
    expect(found).toEqual(['checkpoint_forged 7', 'checkpoint_forged 6']);
  });

  it('are missing when another one or the database names them', () => {
    const missing = (seqs: readonly [bigint, bigint][], reached: string): readonly string[] =>
      collect((report) => {
        const checkpoints = seqs.map(([seq, after]) => checkpointAt(seq, after));
        reportMissing(organization, checkpoints, [{ signer: 'a', seq: reached }], report);
      });
    expect(
      missing(
        [
          [2n, 0n],
          [5n, 2n],
        ],
        '5',
      ),
    ).toEqual([]);
    expect(missing([[5n, 2n]], '5')).toEqual(['checkpoint_missing 2']);
    expect(missing([[2n, 0n]], '5')).toEqual(['checkpoint_missing 5']);
    expect(missing([], '5')).toEqual(['checkpoint_missing 5']);
  });
});

describe('the ends of a chain', () => {
  const genesis = { seq: 0n, hash: Buffer.alloc(32) };
  const check = (
    ends: { readonly floor?: bigint; readonly head?: bigint; readonly events?: number },
    ...checkpoints: readonly ReturnType<typeof checkpointAt>[]
  ): readonly string[] => {
    const { floor, head, events = 9 } = ends;
    const endOf = (seq: bigint) => ({ seq, hash: Buffer.from(hash, 'hex') });
    const chain = {
      organizationId: organization,
      floor: floor === undefined ? genesis : endOf(floor),
      head: head === undefined ? undefined : endOf(head),
      events,
    };
    return collect((report) => checkEnds(chain, checkpoints, NOW_MS, report));
  };

  it('agree with checkpoints that they cover', () => {
    expect(check({ head: 9n }, checkpointAt(5n, 0n), checkpointAt(9n, 5n))).toEqual([]);
    expect(check({ floor: 5n, head: 9n }, checkpointAt(5n, 0n, 401))).toEqual([]);
  });

  it('contradict a checkpoint after the head, or of an organization without events', () => {
    expect(check({ head: 7n }, checkpointAt(9n, 0n))).toEqual(['truncated 8..9']);
    expect(check({ events: 0 }, checkpointAt(9n, 0n))).toEqual(['removed 1..9']);
  });

  it('contradict a checkpoint that proves removed events to be too recent', () => {
    expect(check({ floor: 5n, head: 9n }, checkpointAt(5n, 0n, 399))).toEqual(['expired_early 5']);
    expect(check({ floor: 5n, head: 9n }, checkpointAt(9n, 3n, 399))).toEqual(['expired_early 4']);
  });

  it('contradict a checkpoint with another hash at the floor', () => {
    const other = { ...checkpointAt(5n, 0n, 401), hash: 'cd'.repeat(32) };
    expect(check({ floor: 5n, head: 9n }, other)).toEqual(['rewritten 5']);
  });
});
