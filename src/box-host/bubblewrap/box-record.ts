// What must be known about a box after the box host was killed: where its files lie and as which user it runs.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseJsonDocument } from '../../base/json/json-document.ts';
import { InputError } from '../../base/input-error.ts';
import { parseWith, z } from '../../base/schema.ts';

const schema = z.object({
  snapshotId: z.string(),
  capacityBytes: z.number().int(),
  kind: z.enum(['loop', 'tmpfs']),
  /** The host user of the box. */
  uid: z.number().int().optional(),
});

export type BoxRecord = z.infer<typeof schema>;

const RECORD = 'box.json';
const UNFINISHED = '.creating-';

export class BoxRecords {
  readonly #directory: string;
  readonly #records: Map<string, BoxRecord>;

  private constructor(directory: string, records: Map<string, BoxRecord>) {
    this.#directory = directory;
    this.#records = records;
  }

  /** Removes what a killed box host had begun. */
  static async open(directory: string): Promise<BoxRecords> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const found = new Map<string, BoxRecord>();
    for (const name of await readdir(directory)) {
      const record = name.startsWith('.') ? undefined : await readRecord(join(directory, name));
      if (record === undefined) await rm(join(directory, name), { recursive: true, force: true });
      else found.set(name, record);
    }
    return new BoxRecords(directory, found);
  }

  /** By the id of the box. */
  get all(): ReadonlyMap<string, BoxRecord> {
    return this.#records;
  }

  /** The directory of a box, whose id becomes its name. */
  place(id: string): string {
    if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(id))
      throw new InputError('The id of a box has 1 to 64 of the characters a to z, 0 to 9 and -');
    return join(this.#directory, id);
  }

  /** `fill` makes the files of the box; a box is there with all of them or not at all. */
  async create(id: string, record: BoxRecord, fill: (directory: string) => Promise<void>): Promise<void> {
    const place = this.place(id);
    const unfinished = join(this.#directory, `${UNFINISHED}${id}`);
    try {
      await mkdir(unfinished, { mode: 0o700 });
      await fill(unfinished);
      await writeFile(join(unfinished, RECORD), JSON.stringify(record), { mode: 0o600, flush: true });
      await rename(unfinished, place);
      this.#records.set(id, record);
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true });
      throw error;
    }
  }

  /** Of a box that is there: whole, before or after. */
  async update(id: string, record: BoxRecord): Promise<void> {
    const file = join(this.place(id), RECORD);
    await writeFile(`${file}.new`, JSON.stringify(record), { mode: 0o600, flush: true });
    await rename(`${file}.new`, file);
    this.#records.set(id, record);
  }

  async remove(id: string): Promise<void> {
    await rm(this.place(id), { recursive: true, force: true });
    this.#records.delete(id);
  }
}

/** Undefined: the directory is no box, or its record is damaged, and with it what is known about its files. */
async function readRecord(directory: string): Promise<BoxRecord | undefined> {
  const text = await readFile(join(directory, RECORD), 'utf8').catch(() => '');
  const json = parseJsonDocument(text);
  const parsed = json.ok ? parseWith(schema, json.value) : undefined;
  return parsed?.ok ? parsed.value : undefined;
}
