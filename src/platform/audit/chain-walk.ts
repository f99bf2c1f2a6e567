// Follows the chain of one organization from its floor to its head and says of every event what is wrong with it. Events
// are handed in one by one in the order of their numbers; of sound ones nothing is kept. Pure.
import { hashOf, type Link } from './chain.ts';
import type { Finding, FindingKind } from './finding.ts';

export type ChainEnds = {
  readonly organizationId: string;
  /** The last event that retention has removed, or where the chain began. */
  readonly floor: { readonly seq: bigint; readonly hash: Buffer };
  /** Undefined where the head is gone. */
  readonly head: { readonly seq: bigint; readonly hash: Buffer } | undefined;
};

export type ChainWalk = {
  accept(link: Link): void;
  finish(): void;
};

/** So many events whose hash is wrong are kept, to see whether they have only changed places. */
const MAX_SUSPECTS = 200;

type Report = (finding: Finding) => void;
type Gap = { readonly from: bigint; readonly to: bigint };

export function createChainWalk({ organizationId, floor, head }: ChainEnds, report: Report): ChainWalk {
  const suspects: Link[] = [];
  const gaps: Gap[] = [];
  let last = { seq: floor.seq, hash: floor.hash, isWhole: true };

  const addFinding = (kind: FindingKind, link: Link, sentence: string): void =>
    report({ kind, organizationId, seq: link.seq, id: link.id, sentence });

  return {
    accept(link) {
      if (link.seq <= floor.seq)
        return addFinding('inserted', link, 'it stands below where the chain begins');
      if (head !== undefined && link.seq > head.seq)
        return addFinding('inserted', link, 'it stands behind the head of the chain');
      const isWhole = hashOf(link)?.equals(link.hash) ?? false;
      const hasGap = link.seq > last.seq + 1n;
      if (hasGap) gaps.push({ from: last.seq + 1n, to: link.seq - 1n });
      if (!isWhole) suspect(link);
      // Behind an event that is named already nothing is learnt from the link to it.
      else if (!hasGap && last.isWhole && !link.previousHash.equals(last.hash))
        addFinding(
          'unlinked',
          link,
          'it does not follow from the event before it: one of the two was replaced',
        );
      last = { seq: link.seq, hash: link.hash, isWhole };
    },
    finish() {
      const moved = new Set(sortOut(suspects, gaps, report));
      for (const gap of gaps) reportGap(gap, moved);
      finishAtHead();
    },
  };

  function suspect(link: Link): void {
    if (suspects.length < MAX_SUSPECTS) suspects.push(link);
    else addFinding('edited', link, EDITED);
  }

  function reportGap({ from, to }: Gap, moved: ReadonlySet<bigint>): void {
    const isAllMoved = to - from < BigInt(MAX_SUSPECTS) && range(from, to).every((seq) => moved.has(seq));
    if (isAllMoved) return;
    const sentence = 'gone, though the chain has events before and after';
    report({ kind: 'deleted', organizationId, seq: from, lastSeq: to, sentence });
  }

  function finishAtHead(): void {
    const at = { organizationId, seq: last.seq };
    if (head === undefined) {
      if (last.seq > floor.seq)
        report({ kind: 'head_edited', ...at, sentence: 'the head of the chain is gone' });
    } else if (last.seq > head.seq) {
      report({ kind: 'head_edited', ...at, sentence: 'the head of the chain stands before its beginning' });
    } else if (last.seq < head.seq) {
      const missing = { organizationId, seq: last.seq + 1n, lastSeq: head.seq };
      report({ kind: 'truncated', ...missing, sentence: 'gone from the end of the chain' });
    } else if (last.isWhole && !head.hash.equals(last.hash))
      report({ kind: 'head_edited', ...at, sentence: 'the head of the chain holds another hash than it' });
  }
}

const EDITED = 'its content is not what its hash was made of';

/** Tells edited events from those that stand in each other's place; answers the numbers that were found elsewhere. */
function sortOut(suspects: readonly Link[], gaps: readonly Gap[], report: Report): readonly bigint[] {
  const missing = gaps.flatMap(({ from, to }) => range(from, to)).slice(0, MAX_SUSPECTS);
  const places = [...suspects.map(({ seq }) => seq), ...missing];
  return suspects.flatMap((link) => {
    const place = places.find((seq) => hashOf({ ...link, seq })?.equals(link.hash));
    const { organizationId, seq, id } = link;
    if (place === undefined) report({ kind: 'edited', organizationId, seq, id, sentence: EDITED });
    else report({ kind: 'reordered', organizationId, seq, id, sentence: `it was event ${place}` });
    return place === undefined ? [] : [place];
  });
}

function range(from: bigint, to: bigint): readonly bigint[] {
  const length = to - from < BigInt(MAX_SUSPECTS) ? Number(to - from) + 1 : MAX_SUSPECTS;
  return Array.from({ length }, (_, at) => from + BigInt(at));
}
