// The checkpoints of all organizations, read once, and the comparison of each with the database. Memory grows with the
// number of checkpoints, not with the number of events. Pure.
import type { KeyObject } from 'node:crypto';
import type { ChainEnds } from './chain-walk.ts';
import { type Checkpoint, readCheckpoint, type SignedCheckpoint } from './checkpoint.ts';
import type { Finding } from './finding.ts';

export type CheckpointBook = {
  /** How many were read. */
  readonly checkpoints: number;
  /** Lines that are not checkpoints: the rest of a write that was cut off, or a damaged line. */
  readonly unreadable: number;
  readonly organizations: readonly string[];
  /** In the order of their events. */
  of(organizationId: string): readonly SignedCheckpoint[];
};

type Report = (finding: Finding) => void;

/** Events older than this may be expired. One hour less than the retention time, since clocks differ. */
const RETENTION_MS = (400 * 24 - 1) * 60 * 60 * 1000;

export async function readCheckpoints(
  lines: AsyncIterable<string>,
  keys: readonly KeyObject[],
  report: Report,
): Promise<CheckpointBook> {
  const read = new Map<string, Map<string, SignedCheckpoint>>();
  let checkpoints = 0;
  let unreadable = 0;
  for await (const line of lines) {
    const reading = readCheckpoint(line, keys);
    if (reading.kind === 'unreadable') unreadable += 1;
    else if (reading.kind === 'checkpoint') {
      checkpoints += 1;
      const { organization, key, seq, hash } = reading.checkpoint;
      const own = read.get(organization) ?? new Map<string, SignedCheckpoint>();
      read.set(organization, own.set(`${key} ${seq} ${hash}`, reading.checkpoint));
    } else report(toForgery(reading.kind, reading.checkpoint));
  }
  const of = (organizationId: string): readonly SignedCheckpoint[] =>
    [...(read.get(organizationId)?.values() ?? [])].toSorted((a, b) => Number(a.seq - b.seq));
  return { checkpoints, unreadable, organizations: [...read.keys()], of };
}

function toForgery(kind: 'forged' | 'unknown_key', { organization, seq }: Checkpoint): Finding {
  const sentence =
    kind === 'forged'
      ? 'the signature of its checkpoint is invalid'
      : 'its checkpoint is signed by a key that was not given';
  return { kind: 'checkpoint_forged', organizationId: organization, seq, sentence };
}

/** The last event that the checkpoints of one key cover, according to the database. */
export type ReachedSeq = { readonly signer: string; readonly seq: string };

/** Every checkpoint names the previous one of its key, and the database names the last one of each known key. */
export function reportMissing(
  organizationId: string,
  checkpoints: readonly SignedCheckpoint[],
  reached: readonly ReachedSeq[],
  report: Report,
): void {
  const byKey = Map.groupBy(checkpoints, ({ key }) => key);
  for (const key of new Set([...byKey.keys(), ...reached.map(({ signer }) => signer)])) {
    const own = byKey.get(key) ?? [];
    const present = new Set([0n, ...own.map(({ seq }) => seq)]);
    const last = reached.filter(({ signer }) => signer === key).map(({ seq }) => BigInt(seq));
    for (const seq of new Set([...own.map(({ after }) => after), ...last])) {
      if (present.has(seq)) continue;
      const sentence = 'its checkpoint was written and is missing';
      report({ kind: 'checkpoint_missing', organizationId, seq, sentence });
    }
  }
}

/** Compares the checkpoints with the ends of a chain; `events` is the number of its events. */
export function checkEnds(
  { organizationId, floor, head, events }: ChainEnds & { readonly events: number },
  checkpoints: readonly Checkpoint[],
  nowMs: number,
  report: Report,
): void {
  const newest = checkpoints.at(-1);
  if (newest !== undefined && head === undefined && events === 0) {
    const sentence = 'covered by a checkpoint, but the organization has no event and no head';
    return report({ kind: 'removed', organizationId, seq: 1n, lastSeq: newest.seq, sentence });
  }
  if (newest !== undefined && head !== undefined && newest.seq > head.seq) {
    const sentence = 'covered by a checkpoint, but after the head of the chain';
    report({ kind: 'truncated', organizationId, seq: head.seq + 1n, lastSeq: newest.seq, sentence });
  }
  for (const { seq, hash, time, after, since } of checkpoints.filter((one) => one.after < floor.seq)) {
    const isAllRemoved = seq <= floor.seq;
    if (nowMs - (isAllRemoved ? time : since) < RETENTION_MS) {
      const sentence = 'removed as expired, but a checkpoint proves that it is less than 400 days old';
      report({ kind: 'expired_early', organizationId, seq: isAllRemoved ? seq : after + 1n, sentence });
    }
    if (seq === floor.seq && hash !== floor.hash.toString('hex')) report(rewritten(organizationId, seq));
  }
}

export function rewritten(organizationId: string, seq: bigint, id?: string): Finding {
  const sentence =
    'its hash differs from the one in its checkpoint: the event or one before it was rewritten';
  return { kind: 'rewritten', organizationId, seq, ...(id === undefined ? {} : { id }), sentence };
}
