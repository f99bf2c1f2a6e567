// The checkpoints of all organizations, read once, and what they say against what stands in the database. Its size
// goes with the checkpoints, not with the events. Pure.
import type { KeyObject } from 'node:crypto';
import { type Checkpoint, readCheckpoint, type SignedCheckpoint } from './checkpoint.ts';
import type { ChainEnds } from './chain-walk.ts';
import type { Finding } from './finding.ts';

export type CheckpointBook = {
  /** Counts of what was read. */
  readonly checkpoints: number;
  /** Lines that are none: what is left of a write that was cut off, or of a line that was destroyed. */
  readonly unreadable: number;
  readonly organizations: readonly string[];
  of(organizationId: string): readonly SignedCheckpoint[];
};

type Report = (finding: Finding) => void;

/** What retention may remove; a little less, since clocks differ. */
const KEPT_MS = (400 * 24 - 1) * 60 * 60 * 1000;

export async function readCheckpoints(
  lines: AsyncIterable<string>,
  keys: readonly KeyObject[],
  report: Report,
): Promise<CheckpointBook> {
  const held = new Map<string, Map<string, SignedCheckpoint>>();
  let checkpoints = 0;
  let unreadable = 0;
  for await (const line of lines) {
    const reading = readCheckpoint(line, keys);
    if (reading.kind === 'unreadable') unreadable += 1;
    else if (reading.kind === 'checkpoint') {
      checkpoints += 1;
      const { checkpoint } = reading;
      const { organizationId, signer, seq, hash } = checkpoint;
      const mine = held.get(organizationId) ?? new Map<string, SignedCheckpoint>();
      mine.set(`${signer} ${seq} ${hash}`, checkpoint);
      held.set(organizationId, mine);
    } else report(toForgery(reading.kind, reading.checkpoint));
  }
  const of = (organizationId: string): readonly SignedCheckpoint[] =>
    [...(held.get(organizationId)?.values() ?? [])].toSorted((a, b) => Number(a.seq - b.seq));
  return { checkpoints, unreadable, organizations: [...held.keys()], of };
}

function toForgery(kind: 'forged' | 'unknown_key', { organizationId, seq }: Checkpoint): Finding {
  const sentence =
    kind === 'forged'
      ? 'the signature of its checkpoint is not of this checkpoint'
      : 'its checkpoint is signed by a key that is not among those given';
  return { kind: 'checkpoint_forged', organizationId, seq, sentence };
}

/**
 * Every checkpoint names the one before it of its key, and the database the last one of each: `reached` by signer, those
 * alone whose key is known.
 */
export function reportMissing(
  organizationId: string,
  checkpoints: readonly SignedCheckpoint[],
  reached: ReadonlyMap<string, bigint>,
  report: Report,
): void {
  const bySigner = Map.groupBy(checkpoints, ({ signer }) => signer);
  for (const signer of new Set([...bySigner.keys(), ...reached.keys()])) {
    const own = bySigner.get(signer) ?? [];
    const present = new Set([0n, ...own.map(({ seq }) => seq)]);
    const named = new Set([...own.map(({ after }) => after), reached.get(signer) ?? 0n]);
    for (const seq of named) {
      if (present.has(seq)) continue;
      const sentence = 'its checkpoint was written and is gone';
      report({ kind: 'checkpoint_missing', organizationId, seq, sentence });
    }
  }
}

/** What checkpoints say of the ends of a chain, whose events have been counted. */
export function checkEnds(
  { organizationId, floor, head, events }: ChainEnds & { readonly events: number },
  checkpoints: readonly Checkpoint[],
  nowMs: number,
  report: Report,
): void {
  const newest = checkpoints.at(-1);
  if (newest !== undefined && head === undefined && events === 0) {
    const sentence = 'a checkpoint saw it; no event and no head of this organization is left';
    return report({ kind: 'removed', organizationId, seq: 1n, lastSeq: newest.seq, sentence });
  }
  if (newest !== undefined && head !== undefined && newest.seq > head.seq) {
    const sentence = 'a checkpoint saw it behind what is now the head of the chain';
    report({ kind: 'truncated', organizationId, seq: head.seq + 1n, lastSeq: newest.seq, sentence });
  }
  for (const { seq, hash, timeMs, after, sinceMs } of checkpoints.filter((one) => one.after < floor.seq)) {
    const isAllRemoved = seq <= floor.seq;
    if (nowMs - (isAllRemoved ? timeMs : sinceMs) < KEPT_MS) {
      const sentence = 'a checkpoint saw it less than 400 days ago, and it is removed as if it were older';
      report({ kind: 'expired_early', organizationId, seq: isAllRemoved ? seq : after + 1n, sentence });
    }
    if (seq === floor.seq && hash !== floor.hash.toString('hex')) report(rewritten(organizationId, seq));
  }
}

export function rewritten(organizationId: string, seq: bigint, id?: string): Finding {
  const sentence = 'its hash is not the one that a checkpoint saw: it or an event before it was rewritten';
  return { kind: 'rewritten', organizationId, seq, ...(id === undefined ? {} : { id }), sentence };
}
