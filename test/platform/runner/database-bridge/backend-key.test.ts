// The key of a connection is found in what the server sends first, however it is cut.
import { expect, it } from 'vitest';
import { createKeyReader } from '../../../../src/platform/runner/database-bridge/backend-key.ts';

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`, 'latin1');
  head.writeUInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

const key = Buffer.from('0000002a01020304', 'hex');
const greeting = Buffer.concat([
  message('R', Buffer.alloc(4)),
  message('S', Buffer.from('server_version\x0018\0')),
  message('K', key),
  message('Z', Buffer.from('I')),
]);

it.each([1, 3, 7, greeting.length])('in pieces of %i bytes', (size) => {
  const reader = createKeyReader();
  const found: string[] = [];
  for (let at = 0; at < greeting.length; at += size) {
    const read = reader.read(greeting.subarray(at, at + size));
    if (read !== undefined) found.push(read);
  }
  expect(found).toEqual([key.toString('hex')]);
  expect(reader.isDone).toBe(true);
  expect(reader.read(message('K', key))).toBeUndefined();
});

it('what is no greeting is not collected', () => {
  const reader = createKeyReader();
  expect(reader.read(Buffer.alloc(64, 0xff))).toBeUndefined();
  expect(reader.isDone).toBe(true);
});
