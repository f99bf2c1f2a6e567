import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { chmod, chown, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InputError } from '../../../src/base/input-error.ts';
import { fingerprintOf, readCheckpoint, signCheckpoint } from '../../../src/platform/audit/checkpoint.ts';
import {
  openSigningKey,
  publicKeyFile,
  readVerificationKey,
} from '../../../src/platform/audit/signing-key.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

const checkpoint = {
  organization: '11111111-1111-4111-8111-111111111111',
  seq: 7n,
  hash: 'ab'.repeat(32),
  time: 1_795_000_000_000,
  since: 1_794_999_999_000,
  after: 3n,
};

let scratch: Scratch;
let file: string;
beforeEach(async () => {
  scratch = await createScratch();
  file = join(scratch.path, 'audit-signing.key');
});
afterEach(() => scratch[Symbol.asyncDispose]());

function fingerprint(key: KeyObject): string {
  return fingerprintOf(key.type === 'private' ? createPublicKey(key) : key);
}

describe('the signing key', () => {
  it('is created once, readable only by its owner', async () => {
    const created = await openSigningKey(file);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(fingerprint(await openSigningKey(file))).toBe(fingerprint(created));
    expect((await readdir(scratch.path)).toSorted()).toEqual(['audit-signing.key', 'audit-signing.key.pub']);
  });

  it('is the same for several processes that open it at once', async () => {
    const keys = await Promise.all(Array.from({ length: 8 }, () => openSigningKey(file)));
    expect(new Set(keys.map(fingerprint)).size).toBe(1);
    expect(fingerprint(await readVerificationKey(publicKeyFile(file)))).toBe(fingerprint(keys[0]!));
    expect(await readdir(scratch.path)).toHaveLength(2);
  });

  it('can be verified with its public half only', async () => {
    const key = await openSigningKey(file);
    const half = await readVerificationKey(publicKeyFile(file));
    expect(half.type).toBe('public');
    expect(await readFile(publicKeyFile(file), 'utf8')).toContain('PUBLIC KEY');
    const line = signCheckpoint(checkpoint, key).trim();
    expect(readCheckpoint(line, [half])).toEqual({
      kind: 'checkpoint',
      checkpoint: { ...checkpoint, key: fingerprintOf(half) },
    });
    expect(fingerprint(await readVerificationKey(file))).toBe(fingerprint(half));
  });

  it('is rejected when other users can read it or own it, or when it is not an Ed25519 key', async () => {
    await openSigningKey(file);
    await chmod(file, 0o640);
    await expect(openSigningKey(file)).rejects.toThrow(InputError);
    await chmod(file, 0o600);
    if (process.getuid?.() === 0) {
      await chown(file, 65_534, 65_534);
      await expect(openSigningKey(file)).rejects.toThrow(/another user/);
    }
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const other = await scratch.write('ec', String(privateKey.export({ type: 'pkcs8', format: 'pem' })));
    const noise = await scratch.write('noise', 'not a key');
    for (const wrong of [other, noise]) {
      await expect(openSigningKey(wrong)).rejects.toThrow(InputError);
      await expect(readVerificationKey(wrong)).rejects.toThrow(/not an Ed25519 key/);
    }
  });
});
