// Addresses of attachments that need no key: a path of this platform with the time of its end and a signature. Keys of the signatures
// are rows of the database, so that each of its processes accepts what another one has signed.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from '../../../base/schema.ts';
import type { Reader } from '../../store/database.ts';
import { defineJob } from '../../store/job.ts';
import { sql } from '../../store/sql.ts';
import '../store/trace-rows.ts';

const SECONDS = 3_600;
const KEY_BYTES = 32;

/** Below the prefix that clients take off their own endpoint before they append it. */
export const ADDRESS = '/api/v1/attachments';

export function signedAddress(key: Buffer, object: string, nowMs: number): string {
  const expires = String(Math.floor(nowMs / 1000) + SECONDS);
  const signature = sign(key, object, expires).toString('base64url');
  return `${ADDRESS}?${new URLSearchParams({ object, expires, signature }).toString()}`;
}

/** Its time is over, whoever has signed it. */
export function isExpired(search: URLSearchParams, nowMs: number): boolean {
  const expires = search.get('expires') ?? '';
  return /^\d{1,12}$/.test(expires) && Number(expires) * 1000 <= nowMs;
}

/** Whether one of the keys has signed it, and its time is not over. */
export function isSigned(keys: readonly Buffer[], search: URLSearchParams, nowMs: number): boolean {
  const valueOf = (name: string): string => search.get(name) ?? '';
  const [object, expires] = [valueOf('object'), valueOf('expires')];
  const given = Buffer.from(valueOf('signature'), 'base64url');
  // Each key takes the same time, whether an earlier one has signed it.
  const signed = keys.map((key) => {
    const expected = sign(key, object, expires);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
  return signed.includes(true) && /^\d{1,12}$/.test(expires) && Number(expires) * 1000 > nowMs;
}

/** Neither part contains a line break that the other could begin with: the time comes first, and has none. */
function sign(key: Buffer, object: string, expires: string): Buffer {
  return createHmac('sha256', key).update(`${expires}\n${object}`).digest();
}

export async function newestKey(db: Reader): Promise<Buffer> {
  const [key] = await signingKeys(db);
  if (key === undefined) throw new Error('the table trace_signing_keys has no key');
  return key;
}

/** The newest first. */
export async function signingKeys(db: Reader): Promise<readonly Buffer[]> {
  const rows = await db
    .selectFrom('trace_signing_keys')
    .select('key')
    .orderBy('created_at', 'desc')
    .orderBy('key')
    .execute();
  return rows.map(({ key }) => key);
}

/** A key that was read from a backup signs nothing after two days. */
export const replaceSigningKeys = defineJob({
  name: 'replace-trace-signing-keys',
  data: z.strictObject({}),
  ...{ retries: 3, delaySeconds: 60, timeoutSeconds: 60 },
  schedule: { cron: '23 2 * * *', data: {} },
  async run(_, { store }) {
    await store.write(async (trx) => {
      await trx
        .insertInto('trace_signing_keys')
        .values({ key: randomBytes(KEY_BYTES) })
        .execute();
      // What a key has signed expires an hour after there is a newer one, which may be late: jobs do not run while nothing works.
      const isOver = sql<boolean>`exists (select from trace_signing_keys newer
        where newer.created_at > trace_signing_keys.created_at and newer.created_at < now() - interval '2 hours')`;
      await trx.deleteFrom('trace_signing_keys').where(isOver).execute();
    });
  },
});
