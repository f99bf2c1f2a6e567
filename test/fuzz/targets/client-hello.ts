// Fuzz target: a ClientHello reads alike whole and in any pieces, a final result never changes, and its server name and
// ALPN list are those that a second, simple reader finds. One that is made of the bytes, and sound, is read as it was made.
// Input: how the bytes are split, then the bytes.
import assert from 'node:assert/strict';
import { createHelloCollector, type HelloReading } from '../../../src/tls/client-hello.ts';
import { readClientHello } from '../../tls/hello-bytes.ts';
import { split } from '../split.ts';

type Found = { readonly name: string | undefined; readonly alpn: readonly string[] | undefined };

export function fuzz(data: Buffer): void {
  const { whole, pieces } = split(data);
  const reading = readClientHello(whole);
  assert.deepEqual(readInPieces(pieces), reading);
  assertMadeIsRead(whole);
  if (reading.kind === 'more') return;
  assert.deepEqual(
    readClientHello(Buffer.concat([whole, whole])),
    reading,
    'what follows changes the result',
  );
  const found = findHello(whole);
  if (reading.kind !== 'hello') return;
  assert(found !== undefined, 'a second reader finds no hello');
  const name = found.name?.toLowerCase().replace(/\.$/, '');
  assert.deepEqual({ name: reading.serverName, alpn: reading.alpn }, { name, alpn: found.alpn });
  assert.match(reading.serverName ?? 'none', /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/);
}

function readInPieces(pieces: readonly Buffer[]): HelloReading {
  const collector = createHelloCollector();
  let reading: HelloReading = { kind: 'more' };
  for (const piece of pieces) {
    const before: HelloReading = reading;
    reading = collector.push(piece);
    if (before.kind !== 'more') assert.deepEqual(reading, before, 'a final result changes');
  }
  assert(collector.bytes.equals(Buffer.concat(pieces)), 'bytes are lost');
  return reading;
}

/** A sound hello: its name and protocol from the bytes, in records whose size the first of them says. */
function assertMadeIsRead(bytes: Buffer): void {
  const name = `${Array.from(bytes.subarray(0, 40), (byte) => 'abcdefgh'[byte % 8]).join('')}x.test`;
  const protocol = bytes.subarray(1, 200);
  const list = protocol.length === 0 ? [] : [extension(16, vector(2, vector(1, protocol)))];
  const extensions = [
    extension(0, vector(2, Buffer.concat([Buffer.of(0), vector(2, Buffer.from(name))]))),
    ...list,
  ];
  const body = [
    Buffer.of(3, 3),
    Buffer.alloc(32),
    vector(1, bytes.subarray(0, 32)),
    vector(2, Buffer.of(19, 1)),
  ];
  body.push(vector(1, Buffer.of(0)), vector(2, Buffer.concat(extensions)));
  const message = Buffer.concat([Buffer.of(1), vector(3, Buffer.concat(body))]);
  const step = 1 + (bytes[0] ?? 255);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += step)
    records.push(Buffer.of(22, 3, 1), vector(2, message.subarray(at, at + step)));
  const alpn = protocol.length === 0 ? undefined : [protocol.toString('latin1')];
  assert.deepEqual(readClientHello(Buffer.concat(records)), { kind: 'hello', serverName: name, alpn });
}

function extension(type: number, data: Buffer): Buffer {
  return Buffer.concat([Buffer.of(0, type), vector(2, data)]);
}

function vector(size: 1 | 2 | 3, content: Buffer): Buffer {
  const length = Buffer.alloc(size);
  length.writeUIntBE(content.length, 0, size);
  return Buffer.concat([length, content]);
}

/** Believes every length; what does not fit is no hello. */
function findHello(bytes: Buffer): Found | undefined {
  try {
    const message = joinRecords(bytes);
    const body = message.subarray(4, 4 + message.readUIntBE(1, 3));
    let at = 34;
    at += 1 + body.readUInt8(at);
    at += 2 + body.readUInt16BE(at);
    at += 1 + body.readUInt8(at);
    return findExtensions(body.subarray(at + 2));
  } catch {
    return undefined;
  }
}

function joinRecords(bytes: Buffer): Buffer {
  const fragments: Buffer[] = [];
  for (let at = 0; at + 5 <= bytes.length; at += 5 + bytes.readUInt16BE(at + 3))
    fragments.push(bytes.subarray(at + 5, at + 5 + bytes.readUInt16BE(at + 3)));
  return Buffer.concat(fragments);
}

function findExtensions(bytes: Buffer): Found {
  let [name, alpn]: [string | undefined, string[] | undefined] = [undefined, undefined];
  for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt16BE(at + 2)) {
    const type = bytes.readUInt16BE(at);
    const data = bytes.subarray(at + 4, at + 4 + bytes.readUInt16BE(at + 2));
    if (type === 0) name = data.toString('latin1', 5);
    if (type !== 16) continue;
    alpn = [];
    for (let from = 2; from < data.length; from += 1 + data.readUInt8(from))
      alpn.push(data.toString('latin1', from + 1, from + 1 + data.readUInt8(from)));
  }
  return { name, alpn };
}
