// The machine that this process is on: a name that stays, in its data directory.
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** Names this machine by a file in the data directory: what runs boxes and deployments keeps them there too. */
export async function readMachineId(dataDirectory: string): Promise<string> {
  const file = join(dataDirectory, 'machine-id');
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  if (!existsSync(file)) await create(file);
  const id = (await readFile(file, 'utf8')).trim();
  if (UUID.test(id)) return id;
  throw new Error(
    `${file} must contain one UUID: restore it, or remove it where no sandbox and no deployment of this machine is left`,
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
