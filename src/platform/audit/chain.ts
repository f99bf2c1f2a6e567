// What makes the events of an organization a chain: the hash of each takes in the one before it. Computed here a second
// time, by other code than the database's, which wrote it. Pure.
import { createHash } from 'node:crypto';

/** An event as it stands in the database, with its time in whole milliseconds, or whatever stands there instead. */
export type Link = {
  readonly organizationId: string;
  readonly seq: bigint;
  readonly id: string;
  readonly timeMs: string;
  readonly operation: string;
  readonly workspaceId: string | null;
  readonly record: string;
  readonly previousHash: Buffer;
  readonly hash: Buffer;
};

export const genesis: Buffer = Buffer.alloc(32);

const MAX_INT64 = 2n ** 63n - 1n;

/** Undefined where a time is no time: nothing that was ever hashed had such a one. */
export function hashOf(link: Link): Buffer | undefined {
  const timeMs = /^-?\d{1,18}$/.test(link.timeMs) ? BigInt(link.timeMs) : undefined;
  if (timeMs === undefined || link.seq > MAX_INT64) return undefined;
  const hash = createHash('sha256');
  const parts = [
    Buffer.from('sallyport audit 1'),
    uuidBytes(link.organizationId),
    int64Bytes(link.seq),
    uuidBytes(link.id),
    int64Bytes(timeMs),
    Buffer.from(link.operation),
    link.workspaceId === null ? Buffer.alloc(0) : uuidBytes(link.workspaceId),
    Buffer.from(link.record),
    link.previousHash,
  ];
  // Every part carries its length, so that no two events are written alike.
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
