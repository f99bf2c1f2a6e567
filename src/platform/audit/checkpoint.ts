// A checkpoint: a signed statement, stored outside the database, of the state of an organization's chain. An attacker who
// can write the whole database can forge a whole chain, but not this signature. Pure.
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { z } from '../../base/schema.ts';
import { readJson } from './json-text.ts';

const number = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,17})$/)
  .transform(BigInt);

/** The fields of a line, in the order in which they are written. */
const line = z.strictObject({
  /** The id of the organization. */
  organization: z.guid(),
  /** The last event that the checkpoint covers. */
  seq: number,
  /** The hash of that event, in hexadecimal. */
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  /** The time of that event, in milliseconds. */
  time: z.int(),
  /** `seq` of the previous checkpoint by the same key, 0 for the first: a deleted line is noticed. */
  after: number,
  /** The time of the first event after `after`: proves the age of removed events when expiry ended between checkpoints. */
  since: z.int(),
  /** The fingerprint of the public key of the signer. */
  key: z.string(),
  signature: z.base64url(),
});

export type SignedCheckpoint = Omit<z.output<typeof line>, 'signature'>;
export type Checkpoint = Omit<SignedCheckpoint, 'key'>;

export type CheckpointReading =
  | { readonly kind: 'checkpoint'; readonly checkpoint: SignedCheckpoint }
  /** It has the form of a checkpoint, but its key did not sign it. */
  | { readonly kind: 'forged'; readonly checkpoint: Checkpoint }
  | { readonly kind: 'unknown_key'; readonly checkpoint: Checkpoint }
  /** Not a checkpoint, for example the rest of a write that was cut off. */
  | { readonly kind: 'unreadable' };

/** One line, with its line break. */
export function signCheckpoint(checkpoint: Checkpoint, key: KeyObject): string {
  const { organization, seq, hash, time, after, since } = checkpoint;
  const signed: z.input<typeof line> = {
    organization,
    seq: String(seq),
    hash,
    time,
    after: String(after),
    since,
    key: fingerprintOf(createPublicKey(key)),
    signature: sign(null, bytesOf(checkpoint), key).toString('base64url'),
  };
  return `${JSON.stringify(signed)}\n`;
}

/** `keys` are public keys. */
export function readCheckpoint(text: string, keys: readonly KeyObject[]): CheckpointReading {
  const { data } = line.safeParse(readJson(text));
  if (data === undefined) return { kind: 'unreadable' };
  const { signature, ...checkpoint } = data;
  const key = keys.find((known) => fingerprintOf(known) === checkpoint.key);
  if (key === undefined) return { kind: 'unknown_key', checkpoint };
  const isSigned = verify(null, bytesOf(checkpoint), key, Buffer.from(signature, 'base64url'));
  return { kind: isSigned ? 'checkpoint' : 'forged', checkpoint };
}

/** Identifies a public key without revealing anything about the private one. */
export function fingerprintOf(key: KeyObject): string {
  const bytes = key.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}

function bytesOf({ organization, seq, hash, time, after, since }: Checkpoint): Buffer {
  const fields = [organization, String(seq), hash, time, String(after), since];
  return Buffer.from(JSON.stringify(['sallyport checkpoint 1', ...fields]));
}
