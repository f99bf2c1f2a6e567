// `sallyport deploy logs`: the newest lines and, on request, what comes after them.
import { setTimeout as delay } from 'node:timers/promises';
import { InputError } from '../../base/input-error.ts';
import type { ControlPlane, Deployment, LogEntry, LogQuery } from './control-plane.ts';
import { formatLogEntry, type Output } from './output.ts';

export type LogFlags = {
  readonly build: boolean;
  readonly follow: boolean;
  readonly revision: string | undefined;
  readonly level: string | undefined;
};

const NEWEST = 100;
const POLL_MS = 2_000;
/** Lines of the last instant come again, because a query begins with it. */
const MAX_KNOWN = 10_000;

/** With `follow` it goes on until the process is ended. */
export async function printLogs(
  plane: ControlPlane,
  { id }: Deployment,
  flags: LogFlags,
  output: Output,
): Promise<void> {
  const read = await createReader(plane, id, flags);
  const level = flags.level === undefined ? {} : { level: flags.level.toUpperCase() };
  const newest = (await read({ limit: NEWEST, order: 'desc', ...level })).logs.toReversed();
  print(newest, output);
  if (!flags.follow) return;
  const known = new Set(newest.map(idOf));
  let start = newest.at(-1)?.timestamp;
  for (;;) {
    await delay(POLL_MS);
    const since = start === undefined || start === null ? {} : { start_time: toTime(start) };
    const query = { limit: NEWEST, order: 'asc', ...level, ...since } as const;
    for await (const logs of readPages(read, query)) {
      const fresh = logs.filter((entry) => !known.has(idOf(entry)));
      print(fresh, output);
      for (const entry of fresh) remember(known, idOf(entry));
      start = fresh.at(-1)?.timestamp ?? start;
    }
  }
}

async function* readPages(read: Read, query: LogQuery): AsyncGenerator<readonly LogEntry[]> {
  for (let offset: string | undefined; ; ) {
    const { logs, next_offset: next } = await read(offset === undefined ? query : { ...query, offset });
    yield logs;
    if (logs.length < NEWEST || !next) return;
    offset = next;
  }
}

type Read = (query: LogQuery) => ReturnType<ControlPlane['buildLogs']>;

async function createReader(plane: ControlPlane, id: string, flags: LogFlags): Promise<Read> {
  if (!flags.build) return (query) => plane.deployLogs(id, flags.revision, query);
  const revision = flags.revision ?? (await plane.revisions(id, 1))[0]?.id;
  if (revision === undefined) throw new InputError('the deployment has no revision, and so no build');
  return (query) => plane.buildLogs(id, revision, query);
}

function print(entries: readonly LogEntry[], output: Output): void {
  for (const entry of entries) output.result(entry, [formatLogEntry(entry)]);
}

/** Without an id, two lines are the same when they say the same at the same time. */
function idOf({ id, timestamp, message }: LogEntry): string {
  return id === undefined ? JSON.stringify([timestamp, message]) : String(id);
}

function remember(known: Set<string>, id: string): void {
  known.add(id);
  const [oldest] = known;
  if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
}

function toTime(timestamp: string | number): string {
  return typeof timestamp === 'number' ? new Date(timestamp).toISOString() : timestamp;
}
