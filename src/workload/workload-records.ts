// What must be known about a workload when this process was killed: written before anything is made for it, removed when nothing of it
// is left.
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseWith, z } from '../base/schema.ts';
import { isSandboxId } from '../base/sandbox-id.ts';
import { readProcess } from './limits/process-table.ts';

const schema = z.object({
  isolation: z.enum(['bubblewrap', 'user', 'none']),
  /** Its host user. */
  uid: z.int().optional(),
  /** Of the process that contains it: with these, it is no later one with the same id. */
  process: z.object({ pid: z.int().min(2), startedTicks: z.int(), boot: z.string() }).optional(),
});

export type WorkloadRecord = z.output<typeof schema>;
export type RecordedProcess = NonNullable<WorkloadRecord['process']>;

export class WorkloadRecords {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async open(directory: string): Promise<WorkloadRecords> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    return new WorkloadRecords(directory);
  }

  /** By the ids of workloads; undefined: the record is damaged, and with it what is known besides the id. */
  async list(): Promise<ReadonlyMap<string, WorkloadRecord | undefined>> {
    const found = new Map<string, WorkloadRecord | undefined>();
    for (const name of await readdir(this.#directory)) {
      const id = name.replace(/\.json$/, '');
      if (isSandboxId(id)) found.set(id, await readRecord(join(this.#directory, name)));
      else await rm(join(this.#directory, name), { force: true });
    }
    return found;
  }

  /** Whole, before or after. */
  async write(id: string, record: WorkloadRecord): Promise<void> {
    const file = this.#fileOf(id);
    await writeFile(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${file}.new`, file);
  }

  async remove(id: string): Promise<void> {
    await rm(this.#fileOf(id), { force: true });
  }

  #fileOf(id: string): string {
    return join(this.#directory, `${id}.json`);
  }
}

async function readRecord(file: string): Promise<WorkloadRecord | undefined> {
  try {
    const parsed = parseWith(schema, JSON.parse(await readFile(file, 'utf8')));
    return parsed.ok ? parsed.value : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined: it has ended. */
export async function identifyProcess(pid: number): Promise<RecordedProcess | undefined> {
  const entry = readProcess(pid);
  return entry && { pid, startedTicks: entry.startedTicks, boot: await readBoot() };
}

/** Whether the machine has run since: otherwise the process has ended, and its id may be that of any other. */
export async function isOfThisBoot({ boot }: RecordedProcess): Promise<boolean> {
  return (await readBoot()) === boot;
}

/** New with each start of the machine. */
async function readBoot(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')).trim();
}
