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

export type ChainWalk = {
  accept(link: Link): void;
  finish(): void;
};

/** Events with a wrong hash that are stored until the end, to find out which of them have only changed places. */
const MAX_SUSPECTS = 200;

type Report = (finding: Finding) => void;
type Gap = { readonly from: bigint; readonly to: bigint };

export function createChainWalk({ organizationId, floor, head }: ChainEnds, report: Report): ChainWalk {
  const suspects: Link[] = [];
  const gaps: Gap[] = [];
  let last = { seq: floor.seq, hash: floor.hash, isIntact: true };

  const reportLink = (kind: FindingKind, { seq, id }: Link, sentence: string): void =>
    report({ kind, organizationId, seq, id, sentence });
  const reportEdited = (link: Link): void =>
    reportLink('edited', link, 'its content does not match its hash');

  return {
    accept(link) {
      if (link.seq <= floor.seq) return reportLink('inserted', link, 'it is before the start of the chain');
      if (head !== undefined && link.seq > head.seq)
        return reportLink('inserted', link, 'it is after the head of the chain');
      const isIntact = hashOf(link)?.equals(link.hash) ?? false;
      const hasGap = link.seq > last.seq + 1n;
      if (hasGap) gaps.push({ from: last.seq + 1n, to: link.seq - 1n });
      if (!isIntact) {
        if (suspects.length < MAX_SUSPECTS) suspects.push(link);
        else reportEdited(link);
      }
      // After an event that is reported anyway, a broken link proves nothing new.
      else if (!hasGap && last.isIntact && !link.previousHash.equals(last.hash)) {
        const sentence = 'it does not follow from the event before it: one of the two was replaced';
        reportLink('unlinked', link, sentence);
      }
      last = { seq: link.seq, hash: link.hash, isIntact };
    },
    finish() {
      const moved = reportSuspects();
      for (const { from, to } of gaps) {
        if (range(from, to).every((seq) => moved.has(seq))) continue;
        const sentence = 'missing, although the chain has events before and after';
        report({ kind: 'deleted', organizationId, seq: from, lastSeq: to, sentence });
      }
      reportHead();
    },
  };

  /** An event whose hash is right for another number was moved. Returns the original numbers of those. */
  function reportSuspects(): ReadonlySet<bigint> {
    const missing = gaps.flatMap(({ from, to }) => range(from, to)).slice(0, MAX_SUSPECTS);
    const candidates = [...suspects.map(({ seq }) => seq), ...missing];
    const moved = new Set<bigint>();
    for (const link of suspects) {
      const original = candidates.find((seq) => hashOf({ ...link, seq })?.equals(link.hash));
      if (original === undefined) reportEdited(link);
      else {
        moved.add(original);
        reportLink('reordered', link, `it was event ${original}`);
      }
    }
    return moved;
  }

  function reportHead(): void {
    const edited = (sentence: string): void =>
      report({ kind: 'head_edited', organizationId, seq: last.seq, sentence });
    if (head === undefined) {
      if (last.seq > floor.seq) edited('the head of the chain is missing');
    } else if (last.seq > head.seq) edited('the head of the chain is before its start');
    else if (last.seq < head.seq) {
      const sentence = 'missing from the end of the chain';
      report({ kind: 'truncated', organizationId, seq: last.seq + 1n, lastSeq: head.seq, sentence });
    } else if (last.isIntact && !head.hash.equals(last.hash))
      edited('the head of the chain holds a different hash than this event');
  }
}

/** At most one number more than there can be suspects: a longer gap cannot consist of moved events. */
function range(from: bigint, to: bigint): readonly bigint[] {
  const length = Math.min(Number(to - from) + 1, MAX_SUSPECTS + 1);
  return Array.from({ length }, (_, at) => from + BigInt(at));
}
