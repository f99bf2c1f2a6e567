import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { collectBody } from '../../../src/base/http/collected-body.ts';

async function* bodyOf(pieces: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

describe('a body that is read whole', () => {
  it('has the bytes of its pieces in their order', async () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 9 }),
      fc.nat(20_000).map((size) => Buffer.alloc(size, size)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 20 }), async (pieces) => {
        expect(Buffer.concat(await collectBody(bodyOf(pieces)))).toEqual(Buffer.concat(pieces));
      }),
    );
  });

  it('is few pieces, also where a client sends chunks of one byte', async () => {
    const chunks = Array.from({ length: 100_000 }, () => Buffer.from('a'));
    expect((await collectBody(bodyOf(chunks))).length).toBeLessThan(10);
  });

  it('is not copied where it came in one piece, or in large ones', async () => {
    const [small, large, larger] = [Buffer.alloc(3), Buffer.alloc(5_000), Buffer.alloc(70_000)];
    expect((await collectBody(bodyOf([small])))[0]).toBe(small);
    const pieces = await collectBody(bodyOf([large, larger]));
    expect([pieces.length, pieces[0] === large, pieces[1] === larger]).toEqual([2, true, true]);
  });
});
