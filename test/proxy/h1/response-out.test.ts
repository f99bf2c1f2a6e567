// How a response is sent: which pieces are copied into one, and which are written uncopied.
import { Socket } from 'node:net';
import { expect, it, vi } from 'vitest';
import { ResponseOut } from '../../../src/proxy/h1/response-out.ts';
import { writesOf } from '../write-log.ts';

const rows: readonly (readonly [string, readonly number[], number])[] = [
  ['no piece is no write', [], 0],
  ['one piece is handed over', [100_000], 1],
  ['a few that are small in all are joined', [200, 16_000], 1],
  ['large ones are handed over one by one', [200, 16_384], 2],
  ['very many small ones are joined, whatever they are in all', Array.from({ length: 30_000 }, () => 3), 1],
  ['many of a kilobyte are handed over one by one', Array.from({ length: 20 }, () => 1_024), 20],
];
it.each(rows)('%s, and all are sent together', (_, lengths, handedOver) => {
  const client = new Socket();
  const writes = writesOf(client);
  const write = vi.spyOn(client, 'write');
  const out = new ResponseOut(client);
  const pieces = lengths.map((length, i) => Buffer.alloc(length, 97 + (i % 26)));
  for (const piece of pieces) out.add(piece);
  out.flush();
  out.flush();
  const whole = Buffer.concat(pieces).toString();
  expect([writes.join('') === whole, writes.length, write.mock.calls.length]).toEqual([
    true,
    Math.min(1, lengths.length),
    handedOver,
  ]);
  expect(out.bytes).toBe(whole.length);
});
