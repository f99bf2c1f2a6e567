import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSealer, sealOverheadBytes } from '../../src/base/seal.ts';

const sealer = createSealer(randomBytes(32));
const plain = Buffer.from('what is sealed, ünd more');

describe('a sealer', () => {
  it.each([0, 1, 63, 64, 65, 100_000])('opens what it sealed: %i bytes', async (length) => {
    const bytes = randomBytes(length);
    const sealed = await sealer.seal(bytes, 'for a');
    expect(sealed).toHaveLength(length + sealOverheadBytes);
    expect(await sealer.open(sealed, 'for a')).toEqual(bytes);
  });

  it('opens what another sealer with the same key sealed', async () => {
    const key = randomBytes(32);
    const sealed = await createSealer(key).seal(plain, 'für a');
    expect(await createSealer(Buffer.from(key)).open(sealed, 'für a')).toEqual(plain);
  });

  it('uses a new nonce each time', async () => {
    const sealed = await Promise.all(Array.from({ length: 50 }, () => sealer.seal(plain, 'for a')));
    const nonces = new Set(sealed.map((bytes) => bytes.toString('hex', 0, 24)));
    const ciphers = new Set(sealed.map((bytes) => bytes.toString('hex', 24)));
    expect([nonces.size, ciphers.size]).toEqual([50, 50]);
  });

  it('does not open with another key', async () => {
    const sealed = await sealer.seal(plain, 'for a');
    expect(await createSealer(randomBytes(32)).open(sealed, 'for a')).toBeUndefined();
  });

  it.each(['for b', '', 'for a '])('does not open with other associated data: %j', async (associatedData) => {
    expect(await sealer.open(await sealer.seal(plain, 'for a'), associatedData)).toBeUndefined();
  });

  it('does not open when one bit differs', async () => {
    const sealed = await sealer.seal(plain, 'for a');
    for (let at = 0; at < sealed.length; at += 1) {
      const forged = Buffer.from(sealed);
      forged.writeUInt8(forged.readUInt8(at) ^ (1 << (at % 8)), at);
      expect(await sealer.open(forged, 'for a'), `byte ${at}`).toBeUndefined();
    }
  });

  it('does not open truncated or extended bytes', async () => {
    const sealed = await sealer.seal(plain, 'for a');
    for (let length = 0; length < sealed.length; length += 1)
      expect(await sealer.open(sealed.subarray(0, length), 'for a'), `${length} bytes`).toBeUndefined();
    expect(await sealer.open(Buffer.concat([sealed, Buffer.alloc(1)]), 'for a')).toBeUndefined();
  });

  it.each([0, 16, 31, 33])('is not created from a key of %i bytes', (length) => {
    expect(() => createSealer(Buffer.alloc(length))).toThrow('a sealing key must be 32 bytes long');
  });
});
