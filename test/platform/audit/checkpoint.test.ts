import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { fingerprintOf, readCheckpoint, signCheckpoint } from '../../../src/platform/audit/checkpoint.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const checkpoint = {
  organization: '11111111-1111-4111-8111-111111111111',
  seq: 9_007_199_254_740_993n,
  hash: 'ab'.repeat(32),
  time: 1_795_000_000_000,
  after: 3n,
  since: 1_794_999_999_000,
};
const line = signCheckpoint(checkpoint, privateKey);
const change = (fields: object): string => JSON.stringify({ ...JSON.parse(line), ...fields });

describe('a checkpoint', () => {
  it('is one line of JSON with a fixed order of fields', () => {
    expect(line).toMatch(/^\{.*\}\n$/);
    expect(Object.entries(JSON.parse(line))).toEqual([
      ['organization', checkpoint.organization],
      ['seq', '9007199254740993'],
      ['hash', checkpoint.hash],
      ['time', checkpoint.time],
      ['after', '3'],
      ['since', checkpoint.since],
      ['key', fingerprintOf(publicKey)],
      ['signature', expect.stringMatching(/^[\w-]{86}$/)],
    ]);
  });

  it('can be read with the public key of its signer', () => {
    const other = createPublicKey(generateKeyPairSync('ed25519').privateKey);
    const signed = { ...checkpoint, key: fingerprintOf(publicKey) };
    expect(readCheckpoint(line, [other, publicKey])).toEqual({ kind: 'checkpoint', checkpoint: signed });
    expect(readCheckpoint(line, [other])).toEqual({ kind: 'unknown_key', checkpoint: signed });
  });

  it.each([{ seq: '1' }, { hash: 'cd'.repeat(32) }, { time: 1 }, { after: '0' }, { since: 1 }])(
    'is forged when its signature does not cover %o',
    (fields) => expect(readCheckpoint(change(fields), [publicKey]).kind).toBe('forged'),
  );

  it.each([
    '',
    line.slice(0, 40),
    '[]',
    change({ extra: 1 }),
    change({ seq: '01' }),
    change({ seq: 1 }),
    change({ seq: '-1' }),
    change({ hash: 'ab' }),
    change({ time: 1.5 }),
    change({ signature: undefined }),
  ])('cannot be read from %s', (text) =>
    expect(readCheckpoint(text, [publicKey])).toEqual({ kind: 'unreadable' }),
  );
});
