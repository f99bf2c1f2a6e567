// What the first message of a PostgreSQL client is taken for: the bridge decides by it, and sends on what it has decided about.
import { expect, it } from 'vitest';
import {
  formatCancel,
  formatStartup,
  parseFirstMessage,
} from '../../../../src/platform/runner/database-bridge/startup-message.ts';

function message(code: number, body: Buffer | string = ''): Buffer {
  const bytes = Buffer.from(body as string, 'latin1');
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + bytes.length, 0);
  head.writeUInt32BE(code, 4);
  return Buffer.concat([head, bytes]);
}

const VERSION = 3 << 16;
const given = new Map([
  ['user', 'one'],
  ['database', 'two'],
  ['options', '-c search_path=public'],
]);

it('reads names and values', () => {
  const bytes = message(VERSION, 'user\0one\0database\0two\0options\0-c search_path=public\0\0');
  expect(parseFirstMessage(bytes)).toEqual({
    ...{ kind: 'startup', length: bytes.length },
    startup: { minorVersion: 0, parameters: given },
  });
});

it('writes what it has read, for each minor version', () => {
  for (const minorVersion of [0, 2]) {
    const bytes = formatStartup({ minorVersion, parameters: given });
    expect(parseFirstMessage(bytes)).toMatchObject({ startup: { minorVersion, parameters: given } });
  }
});

it('waits for the rest of a message', () => {
  const bytes = formatStartup({ minorVersion: 0, parameters: given });
  for (let end = 0; end < bytes.length; end += 1)
    expect(parseFirstMessage(bytes.subarray(0, end)).kind).toBe('incomplete');
});

it('knows the requests for encryption', () => {
  for (const code of [80_877_103, 80_877_104])
    expect(parseFirstMessage(message(code))).toEqual({ kind: 'encryption', length: 8 });
});

it('reads the key of a cancellation, short or long', () => {
  for (const size of [8, 4 + 256]) {
    const key = Buffer.alloc(size, 7).toString('hex');
    expect(parseFirstMessage(formatCancel(key))).toMatchObject({ kind: 'cancel', key });
  }
});

it.each([
  ['the server would take the last of two users', message(VERSION, 'user\0one\0user\0root\0\0')],
  ['a name without a value', message(VERSION, 'user\0one\0database\0\0')],
  ['no end', message(VERSION, 'user\0one\0')],
  ['something after the end', message(VERSION, 'user\0one\0\0x\0')],
  ['an empty name', message(VERSION, 'user\0one\0\0x\0\0')],
  ['the protocol 2', message(2 << 16, 'user\0one\0\0')],
  ['a request for encryption with a body', message(80_877_103, 'x')],
  ['a cancellation without a key', message(80_877_102, 'abc')],
  ['a length that is too short', Buffer.from([0, 0, 0, 4, 0, 3, 0, 0])],
  ['a length that is too long', Buffer.from([0, 1, 0, 0])],
])('rejects %s', (_, bytes) => {
  expect(parseFirstMessage(bytes).kind).toBe('invalid');
});
