// Fuzz target: a ClientHello reads alike whole and in any pieces, an answer once given stands, and its server name and
// ALPN list are those that a second, simple reader finds. Input: how the bytes are split, then the bytes.
import assert from 'node:assert/strict';
import { createHelloCollector, type HelloReading, readClientHello } from '../../../src/tls/client-hello.ts';
import { split } from '../split.ts';

type Found = { readonly name: string | undefined; readonly alpn: readonly string[] | undefined };

export function fuzz(data: Buffer): void {
  const { whole, pieces } = split(data);
  const reading = readClientHello(whole);
  assert.deepEqual(readInPieces(pieces), reading);
  if (reading.kind === 'more') return;
  assert.deepEqual(
    readClientHello(Buffer.concat([whole, whole])),
    reading,
    'what follows changes the answer',
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
    if (before.kind !== 'more') assert.deepEqual(reading, before, 'a final answer changes');
  }
  assert(collector.bytes.equals(Buffer.concat(pieces)), 'bytes are lost');
  return reading;
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
