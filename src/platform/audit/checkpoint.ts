// A checkpoint: the word of a key outside the database about where an organization's chain stood. Whoever can write the
// whole database can make a whole new chain; what he cannot make is this signature. Pure, but for the key it is given.
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { z } from '../../base/schema.ts';

export type Checkpoint = {
  readonly organizationId: string;
  readonly seq: bigint;
  /** Of that event, in hexadecimal. */
  readonly hash: string;
  /** Of that event. */
  readonly timeMs: number;
  /** The checkpoint before this one by the same key, 0 for the first: a line that is taken out is missed. */
  readonly after: bigint;
  /** Of the first event after that one: what is removed from the beginning ends between two checkpoints, mostly. */
  readonly sinceMs: number;
};

/** `signer` is the fingerprint of the key. */
export type SignedCheckpoint = Checkpoint & { readonly signer: string };

export type CheckpointReading =
  | { readonly kind: 'checkpoint'; readonly checkpoint: SignedCheckpoint }
  /** It reads like a checkpoint, and its key never wrote it. */
  | { readonly kind: 'forged'; readonly checkpoint: Checkpoint }
  | { readonly kind: 'unknown_key'; readonly checkpoint: Checkpoint }
  /** The rest of a write that was cut off, or anything else. */
  | { readonly kind: 'unreadable' };

const number = z.string().regex(/^(?:0|[1-9]\d{0,17})$/);
const line = z.strictObject({
  organization: z.guid(),
  seq: number,
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  time: z.int(),
  after: number,
  since: z.int(),
  key: z.string(),
  signature: z.base64url(),
});

/** One line, with its end. */
export function signCheckpoint(checkpoint: Checkpoint, key: KeyObject): string {
  const { organizationId, seq, hash, timeMs, after, sinceMs } = checkpoint;
  const signed: z.output<typeof line> = {
    organization: organizationId,
    seq: String(seq),
    hash,
    time: timeMs,
    after: String(after),
    since: sinceMs,
    key: fingerprintOf(createPublicKey(key)),
    signature: sign(null, bytesOf(checkpoint), key).toString('base64url'),
  };
  return `${JSON.stringify(signed)}\n`;
}

/** Needs no private key. */
export function readCheckpoint(text: string, keys: readonly KeyObject[]): CheckpointReading {
  const held = readLine(text);
  if (held === undefined) return { kind: 'unreadable' };
  const checkpoint: SignedCheckpoint = {
    signer: held.key,
    organizationId: held.organization,
    seq: BigInt(held.seq),
    hash: held.hash,
    timeMs: held.time,
    after: BigInt(held.after),
    sinceMs: held.since,
  };
  const key = keys.find((known) => fingerprintOf(known) === held.key);
  if (key === undefined) return { kind: 'unknown_key', checkpoint };
  const isSigned = verify(null, bytesOf(checkpoint), key, Buffer.from(held.signature, 'base64url'));
  return { kind: isSigned ? 'checkpoint' : 'forged', checkpoint };
}

/** Tells keys apart without telling anything about them. */
export function fingerprintOf(key: KeyObject): string {
  const bytes = key.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}

function readLine(text: string): z.output<typeof line> | undefined {
  try {
    return line.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function bytesOf({ organizationId, seq, hash, timeMs, after, sinceMs }: Checkpoint): Buffer {
  const place = [organizationId, String(seq), hash, timeMs, String(after), sinceMs];
  return Buffer.from(JSON.stringify(['sallyport checkpoint 1', ...place]));
}
