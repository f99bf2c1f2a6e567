// Follows the chain of one organization from its floor to its head and reports what is wrong with each event. Events
// arrive one by one in the order of their numbers; intact ones are not stored. Pure.
import { hashOf, type Link } from './chain.ts';
import type { Finding, FindingKind } from './finding.ts';

export type ChainEnds = {
  readonly organizationId: string;
  /** The last event that retention has removed; at first the genesis. */
  readonly floor: { readonly seq: bigint; readonly hash: Buffer };
  /** Undefined when the head is missing. */
  readonly head: { readonly seq: bigint; readonly hash: Buffer } | undefined;
};

/** Events with a wrong hash that are stored until the end, to find out which of them have only changed places. */
const MAX_SUSPECTS = 200;

type Report = (finding: Finding) => void;
type Gap = { readonly from: bigint; readonly to: bigint };

export class ChainWalk {
  readonly #ends: ChainEnds;
  readonly #report: Report;
  readonly #suspects: Link[] = [];
  readonly #gaps: Gap[] = [];
  #last: { readonly seq: bigint; readonly hash: Buffer; readonly isIntact: boolean };

  constructor(ends: ChainEnds, report: Report) {
    this.#ends = ends;
    this.#report = report;
    this.#last = { ...ends.floor, isIntact: true };
  }

  accept(link: Link): void {
    const { floor, head } = this.#ends;
    const last = this.#last;
    if (link.seq <= floor.seq) return this.#add('inserted', link, 'it is before the start of the chain');
    if (head !== undefined && link.seq > head.seq)
      return this.#add('inserted', link, 'it is after the head of the chain');
    const isIntact = hashOf(link)?.equals(link.hash) ?? false;
    const hasGap = link.seq > last.seq + 1n;
    if (hasGap) this.#gaps.push({ from: last.seq + 1n, to: link.seq - 1n });
    if (!isIntact && this.#suspects.length < MAX_SUSPECTS) this.#suspects.push(link);
    else if (!isIntact) this.#add('edited', link, EDITED);
    // After an event that is reported anyway, a broken link proves nothing new.
    else if (!hasGap && last.isIntact && !link.previousHash.equals(last.hash))
      this.#add('unlinked', link, UNLINKED);
    this.#last = { seq: link.seq, hash: link.hash, isIntact };
  }

  finish(): void {
    const moved = this.#reportSuspects();
    for (const { from, to } of this.#gaps) {
      if (range(from, to).every((seq) => moved.has(seq))) continue;
      const sentence = 'missing, although the chain has events before and after';
      this.#add('deleted', { seq: from, lastSeq: to }, sentence);
    }
    this.#reportHead();
  }

  /** An event whose hash is right for another number was moved. Returns the original numbers of those. */
  #reportSuspects(): ReadonlySet<bigint> {
    const missing = this.#gaps.flatMap(({ from, to }) => range(from, to)).slice(0, MAX_SUSPECTS);
    const candidates = [...this.#suspects.map(({ seq }) => seq), ...missing];
    const moved = new Set<bigint>();
    for (const link of this.#suspects) {
      const original = candidates.find((seq) => hashOf({ ...link, seq })?.equals(link.hash));
      if (original === undefined) this.#add('edited', link, EDITED);
      else {
        moved.add(original);
        this.#add('reordered', link, `it was event ${original}`);
      }
    }
    return moved;
  }

  #reportHead(): void {
    const { floor, head } = this.#ends;
    const { seq, hash, isIntact } = this.#last;
    if (head === undefined) {
      if (seq > floor.seq) this.#add('head_edited', { seq }, 'the head of the chain is missing');
    } else if (seq > head.seq) this.#add('head_edited', { seq }, 'the head of the chain is before its start');
    else if (seq < head.seq)
      this.#add('truncated', { seq: seq + 1n, lastSeq: head.seq }, 'missing from the end of the chain');
    else if (isIntact && !head.hash.equals(hash))
      this.#add('head_edited', { seq }, 'the head of the chain holds a different hash than this event');
  }

  #add(
    kind: FindingKind,
    { seq, lastSeq, id }: { readonly seq: bigint; readonly lastSeq?: bigint; readonly id?: string },
    sentence: string,
  ): void {
    const { organizationId } = this.#ends;
    const last = lastSeq === undefined ? {} : { lastSeq };
    this.#report({ kind, organizationId, seq, ...last, ...(id === undefined ? {} : { id }), sentence });
  }
}

const EDITED = 'its content does not match its hash';
const UNLINKED = 'it does not follow from the event before it: one of the two was replaced';

/** At most one number more than there can be suspects: a longer gap cannot consist of moved events. */
function range(from: bigint, to: bigint): readonly bigint[] {
  const length = Math.min(Number(to - from) + 1, MAX_SUSPECTS + 1);
  return Array.from({ length }, (_, at) => from + BigInt(at));
}
