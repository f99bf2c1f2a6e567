import { beforeEach, describe, expect, it } from 'vitest';
import { genesis, hashOf, type Link } from '../../../src/platform/audit/chain.ts';
import { type ChainEnds, ChainWalk } from '../../../src/platform/audit/chain-walk.ts';

const organizationId = '11111111-1111-4111-8111-111111111111';

function chainOf(length: number): Link[] {
  const links: Link[] = [];
  for (let seq = 1; seq <= length; seq += 1) {
    const link: Link = {
      organizationId,
      seq: BigInt(seq),
      id: `22222222-2222-4222-8222-${String(seq).padStart(12, '0')}`,
      timeMs: '1795000000000',
      operation: 'login',
      workspaceId: null,
      record: '{}',
      previousHash: links.at(-1)?.hash ?? genesis,
      hash: genesis,
    };
    links.push({ ...link, hash: hashOf(link) ?? genesis });
  }
  return links;
}

let chain: Link[];
beforeEach(() => {
  chain = chainOf(6);
});

function findings(links: readonly Link[], change: Partial<ChainEnds> = {}): readonly string[] {
  const found: string[] = [];
  const head = chain.at(-1);
  const ends = { organizationId, floor: { seq: 0n, hash: genesis }, head, ...change };
  const walk = new ChainWalk(ends, ({ kind, seq, lastSeq }) =>
    found.push(`${kind} ${seq}${lastSeq === undefined ? '' : `..${lastSeq}`}`),
  );
  for (const link of links) walk.accept(link);
  walk.finish();
  return found;
}

describe('a walk along a chain', () => {
  it('finds nothing in an intact chain, also one that starts at a floor', () => {
    expect(findings(chain)).toEqual([]);
    expect(findings(chain.slice(2), { floor: chain[1]! })).toEqual([]);
    expect(findings([], { head: { seq: 0n, hash: genesis } })).toEqual([]);
  });

  it('finds events outside of the chain', () => {
    expect(findings(chain, { floor: { seq: 1n, hash: chain[0]!.hash } })).toEqual(['inserted 1']);
    expect(findings(chain, { head: chain[4]! })).toEqual(['inserted 6']);
  });

  it('finds each edited event, however many there are', () => {
    chain = chainOf(450);
    const edited = chain.map((link) => (link.seq % 2n === 0n ? { ...link, record: '{"a":1}' } : link));
    const found = findings(edited);
    expect(found.toSorted()).toEqual(
      edited
        .filter(({ seq }) => seq % 2n === 0n)
        .map(({ seq }) => `edited ${seq}`)
        .toSorted(),
    );
  });

  it('finds an event that was edited together with its hash by the next one', () => {
    const forged = { ...chain[2]!, record: '{"a":1}' };
    expect(findings(chain.with(2, { ...forged, hash: hashOf(forged)! }))).toEqual(['unlinked 4']);
  });

  it('finds gaps and moved events, and does not report a gap that a moved event left', () => {
    expect(findings(chain.toSpliced(1, 2))).toEqual(['deleted 2..3']);
    expect(findings(chain.toSpliced(4, 2))).toEqual(['truncated 5..6']);
    const moved = [...chain.toSpliced(1, 1), { ...chain[1]!, seq: 7n }];
    expect(findings(moved, { head: { seq: 7n, hash: chain[1]!.hash } })).toEqual(['reordered 7']);
  });

  it('reports a gap that is longer than the number of events that it remembers', () => {
    chain = chainOf(600);
    expect(findings(chain.toSpliced(100, 400))).toEqual(['deleted 101..500']);
  });

  it('finds a head that is missing, wrong or before the floor', () => {
    expect(findings(chain, { head: undefined })).toEqual(['head_edited 6']);
    expect(findings(chain, { head: { seq: 6n, hash: genesis } })).toEqual(['head_edited 6']);
    expect(findings([], { floor: chain[3]!, head: chain[2]! })).toEqual(['head_edited 4']);
  });
});
