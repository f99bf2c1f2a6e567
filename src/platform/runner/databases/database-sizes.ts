// How large the databases of deployments are. A server has no limit of its own for a database, and the role of a deployment may write as much as
// the disk has, which is that of all of them and of the platform.
import { describeBug, type Log } from '../../../base/log.ts';

export type DatabaseSizes = {
  /** From now on, once in a while. Returns what ends it. */
  watch(name: string, take: (bytes: number) => void): () => void;
};

export type SizesOptions = {
  /** By name, of those that are there. */
  read(names: readonly string[]): Promise<ReadonlyMap<string, number>>;
  readonly log: Pick<Log, 'warn'>;
  readonly intervalMs?: number;
};

const INTERVAL_MS = 15_000;

export function watchDatabaseSizes({ read, log, intervalMs = INTERVAL_MS }: SizesOptions): DatabaseSizes {
  const watched = new Map<string, (bytes: number) => void>();
  let timer: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    try {
      for (const [name, bytes] of await read([...watched.keys()])) watched.get(name)?.(bytes);
    } catch (error) {
      log.warn(describeBug(error), 'the sizes of the databases of deployments are not known now');
    }
    timer = watched.size === 0 ? undefined : setTimeout(() => void look(), intervalMs).unref();
  };
  return {
    watch(name, take) {
      watched.set(name, take);
      timer ??= setTimeout(() => void look(), intervalMs).unref();
      return () => {
        if (watched.get(name) === take) watched.delete(name);
      };
    },
  };
}
