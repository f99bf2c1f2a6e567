import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { RequestBody, RequestError } from '../../../src/base/http/request-body.ts';

const head = { hasBody: true, contentLength: 0 };

/** A stream that is fed by the test and counts how often it was asked for more. */
function createSource(): { readonly stream: Readable; readonly asked: () => number } {
  let asked = 0;
  return { stream: new Readable({ read: () => void (asked += 1), highWaterMark: 1 }), asked: () => asked };
}

describe('a request body', () => {
  it('is collected from its pieces', async () => {
    const body = new RequestBody(Readable.from([Buffer.from('a'), Buffer.from('bc')]), { head });
    expect(body.isComplete).toBe(false);
    expect(String(await body.read(3))).toBe('abc');
    expect(body.isComplete).toBe(true);
  });

  it('that the head does not announce is empty and whole, and asks for nothing', async () => {
    const { stream, asked } = createSource();
    const onWanted = (): never => {
      throw new Error('asked for');
    };
    const body = new RequestBody(stream, { head: { hasBody: false, contentLength: 0 }, onWanted });
    expect([String(await body.read(0)), body.isComplete, body.interrupt('late'), asked()]).toEqual([
      '',
      true,
      false,
      0,
    ]);
  });

  it('over its limit is rejected: announced, before it is asked for; else when the limit is passed', async () => {
    let wanted = 0;
    const onWanted = (): void => void (wanted += 1);
    const announced = new RequestBody(Readable.from([]), {
      head: { hasBody: true, contentLength: 4 },
      onWanted,
    });
    await expect(announced.read(3)).rejects.toMatchObject({ kind: 'too_large' });
    expect(wanted).toBe(0);
    const counted = new RequestBody(Readable.from([Buffer.from('ab'), Buffer.from('cd')]), {
      head,
      onWanted,
    });
    await expect(counted.read(3)).rejects.toBeInstanceOf(RequestError);
    expect(wanted).toBe(1);
  });

  it('is streamed no faster than it is consumed', async () => {
    const { stream } = createSource();
    const body = new RequestBody(stream, { head });
    const pieces = body[Symbol.asyncIterator]();
    const first = pieces.next();
    for (const piece of ['a', 'b', 'c']) stream.push(piece);
    stream.push(null);
    expect(String((await first).value)).toBe('a');
    await new Promise(setImmediate);
    expect(stream.isPaused()).toBe(true);
    const rest: string[] = [];
    for (let next = await pieces.next(); next.done !== true; next = await pieces.next())
      rest.push(String(next.value));
    expect([rest.join(''), body.isComplete]).toEqual(['bc', true]);
  });

  const piecesOf = (count: number, bytes: number): readonly Buffer[] =>
    Array.from({ length: count }, () => Buffer.alloc(bytes));

  it.each([
    ['4,096 chunks of a byte', 4_096, 1, 'whole'],
    ['one more', 4_097, 1, 'tiny_chunks'],
    ['many chunks of 7 bytes', 5_000, 7, 'tiny_chunks'],
    ['many chunks of 8 bytes', 5_000, 8, 'whole'],
  ] as const)('of %s: %s x %s is %s', async (_, count, bytes, outcome) => {
    for (const read of [
      (body: RequestBody) => body.read(1_000_000),
      (body: RequestBody) => Array.fromAsync(body.stream({ idleMs: 60_000, totalMs: 60_000 })),
    ]) {
      const body = new RequestBody(Readable.from(piecesOf(count, bytes)), { head });
      if (outcome === 'whole') expect((await read(body)).length).toBeGreaterThan(0);
      else await expect(read(body)).rejects.toMatchObject({ kind: outcome });
    }
  });

  it('with Content-Length may arrive in pieces of a byte, as the network brings them', async () => {
    const body = new RequestBody(Readable.from(piecesOf(10_000, 1)), {
      head: { hasBody: true, contentLength: 10_000 },
    });
    expect(await body.read(10_000)).toHaveLength(10_000);
  });

  it('in many pieces leaves turns to other work, however fast they come', async () => {
    const body = new RequestBody(Readable.from(piecesOf(25_600, 16)), { head });
    let turns = 0;
    let next: NodeJS.Immediate;
    const count = (): void => {
      turns += 1;
      next = setImmediate(count);
    };
    next = setImmediate(count);
    await body.read(1_000_000);
    clearImmediate(next);
    expect(turns).toBeGreaterThanOrEqual(100);
  });

  it.each(['before it is read', 'while it is read'])(
    'that is interrupted %s rejects with the reason',
    async (when) => {
      const { stream } = createSource();
      const body = new RequestBody(stream, { head });
      if (when === 'before it is read') expect(body.interrupt('late')).toBe(true);
      const read = body.read(10);
      read.catch(() => undefined);
      stream.push('a');
      await new Promise(setImmediate);
      if (when === 'while it is read') expect(body.interrupt('late')).toBe(true);
      await expect(read).rejects.toMatchObject({ kind: 'late' });
      // The response is still to be sent on the connection.
      expect([stream.destroyed, body.interrupt('late')]).toEqual([false, false]);
    },
  );

  it('whose client leaves rejects, also when it left before', async () => {
    const { stream } = createSource();
    const read = new RequestBody(stream, { head }).read(10);
    stream.destroy();
    await expect(read).rejects.toMatchObject({ kind: 'client_gone' });
    await expect(new RequestBody(stream, { head }).read(10)).rejects.toMatchObject({ kind: 'client_gone' });
  });
});
