// `sallyport deploy logs`: the newest lines and, on request, what comes after them.
import { setTimeout as delay } from 'node:timers/promises';
import { InputError } from '../../base/input-error.ts';
import type { ControlPlane, Deployment, LogEntry, LogQuery } from './control-plane.ts';
import { formatLogEntry, type Output } from './output.ts';
import { callPatiently } from './repeated-call.ts';

export type LogFlags = {
  readonly build: boolean;
  readonly follow: boolean;
  readonly revision: string | undefined;
  readonly level: string | undefined;
};

const NEWEST = 100;
const POLL_MS = 2_000;
/** What one agent server printed may be stored after what another one printed later. Lines that come again are known. */
const OVERLAP_MS = 2_000;
const MAX_KNOWN = 50_000;

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
  let start = latestOf(newest);
  for (;;) {
    await delay(POLL_MS);
    const since = start === undefined ? {} : { start_time: new Date(start - OVERLAP_MS).toISOString() };
    const query = { limit: NEWEST, order: 'asc', ...level, ...since } as const;
    for await (const logs of readPages(read, query)) {
      const fresh = logs.filter((entry) => !known.has(idOf(entry)));
      print(fresh, output);
      for (const entry of fresh) remember(known, idOf(entry));
      start = latestOf(fresh, start);
    }
  }
}

async function* readPages(read: Read, query: LogQuery): AsyncGenerator<readonly LogEntry[]> {
  for (let offset: string | undefined; ; ) {
    const page = offset === undefined ? query : { ...query, offset };
    const { logs, next_offset: next } = await callPatiently(() => read(page));
    yield logs;
    if (!next) return;
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

/** In milliseconds since 1970. Undefined: no line has a time. */
function latestOf(entries: readonly LogEntry[], before?: number): number | undefined {
  const times = entries.map(({ timestamp }) => new Date(timestamp ?? Number.NaN).getTime());
  return [...times, before ?? Number.NaN]
    .filter((time) => !Number.isNaN(time))
    .reduce<number | undefined>((latest, time) => Math.max(latest ?? time, time), undefined);
}
