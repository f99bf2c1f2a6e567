// The machine that this process is on, and the lease by which one process at a time reconciles its boxes. A lease and not an advisory
// lock: a pooler that gives each transaction another connection carries no lock of a session, and no connection is held.
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';

/** A process that died is followed after this time. */
const LEASE_SECONDS = 6;
/** How often the lease is renewed: twice may fail. */
export const RENEWAL_MS = 2_000;

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** Names this machine by a file in the data directory: what runs boxes keeps them there too. */
export async function readMachineId(dataDirectory: string): Promise<string> {
  const file = join(dataDirectory, 'machine-id');
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  if (!existsSync(file)) await create(file);
  const id = (await readFile(file, 'utf8')).trim();
  if (UUID.test(id)) return id;
  throw new Error(
    `${file} must contain one UUID: restore it, or remove it where no sandbox of this machine is left`,
  );
}

/** Whole from the start: another process may read it at once. The first of several wins. */
async function create(file: string): Promise<void> {
  const id = randomUUID();
  const written = `${file}.${id}`;
  await writeFile(written, id, { flag: 'wx', mode: 0o600, flush: true });
  try {
    await link(written, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await unlink(written);
  }
}

export type Lease = { readonly machineId: string; readonly holder: string };

/** Takes the lease or renews it; false while another process has it. By the clock of the database. */
export async function renewLease(db: Database, { machineId, holder }: Lease): Promise<boolean> {
  const until = sql<Date>`now() + make_interval(secs => ${LEASE_SECONDS})`;
  const rows = await db
    .insertInto('box_machines')
    .values({ id: machineId, holder, held_until: until })
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet({ holder, held_until: until, seen_at: sql<Date>`now()` })
        .where(({ eb, or }) =>
          or([
            eb('box_machines.holder', '=', holder),
            eb('box_machines.holder', 'is', null),
            eb('box_machines.held_until', '<', sql<Date>`now()`),
          ]),
        ),
    )
    .returning('id')
    .execute();
  return rows.length > 0;
}

/** Another process can take it at once. */
export async function releaseLease(db: Database, { machineId, holder }: Lease): Promise<void> {
  await db
    .updateTable('box_machines')
    .set({ holder: null })
    .where('id', '=', machineId)
    .where('holder', '=', holder)
    .execute();
}
