// The hash chain of an organization's events: the hash of each event covers the hash of the one before it. Computed here
// by other code than that of the database, which wrote the hashes. Pure.
import { createHash } from 'node:crypto';

/** An event as the database holds it, which may have been tampered with. */
export type Link = {
  readonly organizationId: string;
  readonly seq: bigint;
  readonly id: string;
  /** A whole number of milliseconds since 1970, unless it was tampered with. */
  readonly timeMs: string;
  readonly operation: string;
  readonly workspaceId: string | null;
  readonly record: string;
  readonly previousHash: Buffer;
  readonly hash: Buffer;
};

/** The previous hash of the first event. */
export const genesis: Buffer = Buffer.alloc(32);

const MAX_INT64 = 2n ** 63n - 1n;

/** Undefined when the time or the number is invalid: no such event was ever hashed. */
export function hashOf(link: Link): Buffer | undefined {
  if (!/^-?\d{1,18}$/.test(link.timeMs) || link.seq > MAX_INT64) return undefined;
  const hash = createHash('sha256');
  const parts = [
    Buffer.from('sallyport audit 1'),
    uuidBytes(link.organizationId),
    int64Bytes(link.seq),
    uuidBytes(link.id),
    int64Bytes(BigInt(link.timeMs)),
    Buffer.from(link.operation),
    link.workspaceId === null ? Buffer.alloc(0) : uuidBytes(link.workspaceId),
    Buffer.from(link.record),
    link.previousHash,
  ];
  // Every part carries its length, so that no two events have the same encoding.
  for (const part of parts) hash.update(int32Bytes(part.length)).update(part);
  return hash.digest();
}

function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}

function int64Bytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

function int32Bytes(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
