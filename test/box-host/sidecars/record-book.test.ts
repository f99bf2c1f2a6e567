// Records wait in bounded memory until they are acknowledged, and a busy box delays no other.
import { describe, expect, it } from 'vitest';
import { RecordBook } from '../../../src/box-host/sidecars/record-book.ts';

const never = new AbortController().signal;
const ONE = '3b241101-e2bb-4255-8caf-4136c566a962';
const TWO = '8d0a8a0e-6d5e-4f7e-9f0b-3a3f6f1f9a01';

describe('the records of boxes', () => {
  it('are offered in order and again, until they are acknowledged', async () => {
    const book = new RecordBook();
    const writer = book.createWriter(() => undefined);
    for (const text of ['{"a":1}', '{"a":2}', '{"a":3}']) writer.write(ONE, text);
    const batch = await book.next(never);
    expect(batch).toMatchObject({ boxId: ONE, firstNumber: 0, records: ['{"a":1}', '{"a":2}', '{"a":3}'] });
    expect(await book.next(never)).toEqual(batch);
    const source = batch?.source ?? '';
    book.acknowledge({ source, number: 1 });
    book.acknowledge({ source, number: 1 });
    expect(await book.next(never)).toMatchObject({ source, firstNumber: 2, records: ['{"a":3}'] });
    book.acknowledge({ source, number: 2 });
    writer.write(ONE, '{"a":4}');
    expect(await book.next(never)).toMatchObject({ source, firstNumber: 3, records: ['{"a":4}'] });
    book.acknowledge({ source: TWO, number: 9 });
    expect(await book.next(never)).toMatchObject({ firstNumber: 3 });
  });

  it('have a source for each box and process, and take turns', async () => {
    const book = new RecordBook();
    const [first, second] = [book.createWriter(() => undefined), book.createWriter(() => undefined)];
    for (let i = 0; i < 600; i++) first.write(ONE, '{}');
    first.write(TWO, '{}');
    second.write(ONE, '{}');
    const seen = [];
    for (let batch = await book.next(never); seen.length < 4; batch = await book.next(never)) {
      const { source = '', boxId, firstNumber = 0, records = [] } = batch ?? {};
      seen.push([boxId, firstNumber, records.length]);
      book.acknowledge({ source, number: firstNumber + records.length - 1 });
      if (seen.length === 4) break;
    }
    expect(seen).toEqual([
      [ONE, 0, 500],
      [TWO, 0, 1],
      [ONE, 0, 1],
      [ONE, 500, 100],
    ]);
  });

  it('wake a reader that waits, and its signal ends the wait', async () => {
    const book = new RecordBook();
    const next = book.next(never);
    book.createWriter(() => undefined).write(ONE, '{}');
    expect(await next).toMatchObject({ boxId: ONE });
    const end = new AbortController();
    const none = new RecordBook().next(end.signal);
    end.abort();
    expect(await none).toBeUndefined();
    expect(await new RecordBook().next(end.signal)).toBeUndefined();
  });

  it('fill their writer, which has capacity again once enough are acknowledged', async () => {
    const book = new RecordBook();
    let resumed = 0;
    const writer = book.createWriter(() => (resumed += 1));
    const other = book.createWriter(() => undefined);
    const text = `{"path":"${'x'.repeat(10_000)}"}`;
    let count = 0;
    for (; !writer.isFull; count++) writer.write(ONE, text);
    expect(count).toBeLessThan(300);
    expect(other.isFull).toBe(false);
    const { source = '', records = [] } = (await book.next(never)) ?? {};
    expect(records.length).toBeLessThan(60);
    book.acknowledge({ source, number: records.length - 1 });
    expect([resumed, writer.isFull]).toEqual([1, false]);
  });
});
