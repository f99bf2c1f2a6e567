// The sizes of a box: what a caller asks for, the defaults of the installation, and whether a machine holds them.
import { InvalidInput } from '../../../base/domain-error.ts';
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { NewBox } from '../box-schema.ts';

export type Sizes = Pick<NewBox, 'vcpus' | 'cpu_millicores' | 'mem_bytes' | 'fs_capacity_bytes'>;

/** Of a box whose creator asks for none: without a size it would count nothing, and nothing would limit it. */
export type DefaultSizes = {
  readonly cpuMillicores: number;
  readonly memoryBytes: number;
  /** Undefined: no machine holds it, because somebody else runs the boxes. */
  readonly storageBytes: number | undefined;
};

/** As columns. What is left out, or null, is not changed. */
export function sizesOf({ vcpus, cpu_millicores, mem_bytes, fs_capacity_bytes }: Sizes) {
  const cpu = cpu_millicores ?? (typeof vcpus === 'number' ? toMillicores(vcpus) : undefined);
  return {
    ...(cpu === undefined ? {} : { cpu_millicores: cpu }),
    ...(typeof mem_bytes === 'number' ? { mem_bytes: String(mem_bytes) } : {}),
    ...(typeof fs_capacity_bytes === 'number' ? { fs_capacity_bytes: String(fs_capacity_bytes) } : {}),
  };
}

export function withDefaults(given: Sizes, defaults: DefaultSizes): Sizes {
  const { vcpus, cpu_millicores, mem_bytes, fs_capacity_bytes } = given;
  return {
    vcpus,
    cpu_millicores: cpu_millicores ?? (typeof vcpus === 'number' ? undefined : defaults.cpuMillicores),
    mem_bytes: mem_bytes ?? defaults.memoryBytes,
    fs_capacity_bytes: fs_capacity_bytes ?? defaults.storageBytes,
  };
}

/** 2.007 * 1000 is a little more than 2007. */
function toMillicores(vcpus: number): number {
  return Math.ceil(Number((vcpus * 1000).toFixed(6)));
}

type StorageQuestion = {
  readonly sizes: Sizes;
  readonly defaults: DefaultSizes;
  /** Of the box; null: any may take it. */
  readonly machineId: string | null;
};

/**
 * A caller relies on a capacity. Throws InvalidInput where no machine that may run the box holds one; a machine that has run
 * nothing yet is not known.
 */
export async function requireStorage(
  db: Reader,
  { sizes, defaults, machineId }: StorageQuestion,
): Promise<void> {
  if (!asksCapacity(sizes)) return;
  const known = await readMachines(db, machineId);
  const isHeld =
    known.length === 0
      ? defaults.storageBytes !== undefined
      : known.some((one) => one.holds_storage === true);
  if (isHeld) return;
  throw new InvalidInput([{ loc: ['body', 'fs_capacity_bytes'], msg: NOT_HELD, type: 'value_error' }]);
}

/** The default of a box that every machine would attach counts no storage. */
export async function defaultStorage(
  db: Reader,
  { storageBytes }: Pick<DefaultSizes, 'storageBytes'>,
  machineId: string | null,
): Promise<number | undefined> {
  if (storageBytes === undefined) return undefined;
  const known = await readMachines(db, machineId);
  const isAttached = known.length > 0 && known.every(({ runtime }) => runtime === 'attached');
  return isAttached ? undefined : storageBytes;
}

export function asksCapacity({ fs_capacity_bytes }: Sizes): boolean {
  return typeof fs_capacity_bytes === 'number';
}

/** Those that may run a box, as far as it is known what they hold. */
async function readMachines(db: Reader, machineId: string | null) {
  const machines = db
    .selectFrom('box_machines')
    .select(['runtime', 'holds_storage'])
    .where('holds_storage', 'is not', null);
  const able =
    machineId === null
      ? machines.where('seen_at', '>', sql<Date>`now() - interval '1 minute'`)
      : machines.where('id', '=', machineId);
  return able.execute();
}

/** Also what a box says that no machine could take. */
export const NOT_HELD = 'What runs sandboxes here does not limit their storage: leave fs_capacity_bytes out';
