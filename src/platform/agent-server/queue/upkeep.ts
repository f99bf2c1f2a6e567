// What every process looks after now and then: runs whose process was lost are made pending again, and runs that were to start
// later are claimed when they are due. Notices make it faster; nothing depends on them.
import { describeBug, type Log } from '../../../base/log.ts';
import type { Store } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { Backlog } from './backlog.ts';
import { freeLostRuns, lookAtPending } from './claims.ts';

export type UpkeepParts = {
  readonly store: Pick<Store, 'db'>;
  readonly log: Log;
  readonly everyMs: number;
  readonly backlog: Pick<Backlog, 'count' | 'limit'>;
  /** There may be runs to claim, with `hasLone` such that are executed alone. */
  onDue(hasLone: boolean): void;
};

export type Upkeep = {
  start(): void;
  /** At once. */
  look(): void;
  close(): Promise<void>;
};

/** After the database was away, the leases of all have run out: whoever still executes a run renews its lease first. */
const LOOKS_AFTER_LOSS = 4;
/** How long the result of a run is kept whose thread has ended with it. */
const RESULT_SECONDS = 120;
const SWEEP_EVERY_LOOKS = 30;

export function createUpkeep({ store, log, everyMs, backlog, onDue }: UpkeepParts): Upkeep {
  let timer: NodeJS.Timeout | undefined;
  let due: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let isWanted = false;
  let withheld = 0;
  let looks = 0;

  const once = async (): Promise<void> => {
    try {
      if (withheld > 0) withheld -= 1;
      else if ((await freeLostRuns(store.db)) > 0) log.warn('runs of a lost process are executed again');
      const { dueMs: ms, oldestMs, hasLone, count } = await lookAtPending(store.db, backlog.limit);
      backlog.count(count, oldestMs);
      clearTimeout(due);
      if (ms !== undefined && ms < everyMs)
        due = setTimeout(() => onDue(hasLone), Math.max(1, Math.ceil(ms))).unref();
      looks += 1;
      if (looks % SWEEP_EVERY_LOOKS === 1) await sweepResults(store.db);
      onDue(hasLone);
    } catch (error) {
      withheld = LOOKS_AFTER_LOSS;
      log.warn(describeBug(error), 'the runs that are due could not be read');
    }
  };
  const run = async (): Promise<void> => {
    while (isWanted) {
      isWanted = false;
      await once();
    }
    looking = undefined;
  };
  const look = (): void => {
    isWanted = true;
    looking ??= run();
  };
  return {
    start() {
      timer = setInterval(look, everyMs).unref();
      look();
    },
    look,
    async close() {
      clearInterval(timer);
      clearTimeout(due);
      isWanted = false;
      await looking;
    },
  };
}

async function sweepResults(db: UpkeepParts['store']['db']): Promise<void> {
  await db
    .deleteFrom('agent_run_results')
    .where('ended_at', '<', sql<Date>`now() - ${RESULT_SECONDS}::int * interval '1 second'`)
    .execute();
}
