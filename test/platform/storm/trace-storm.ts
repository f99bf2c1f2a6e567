// Two platform processes that take runs for the same tenant at once, and are killed in turn at random moments. Other files make the
// runs and check the result; this one runs the storm, and reads afterwards what is there.
import { connectOnce, type Connection } from '../../../src/platform/store/database.ts';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { createRandom, type Random } from '../../http1/mutation.ts';
import { initPlatform, type PlatformOptions } from '../../support/platform-process.ts';
import { openStormMonitor } from './storm-monitor.ts';
import { openStormProcess, type StormProcess } from './storm-process.ts';
import { checkTraces, type Found, type FoundRun, type SentRequest } from './trace-checks.ts';
import { runTraceClient } from './trace-client.ts';

export type TraceStorm = {
  readonly kills: number;
  readonly clients: number;
  readonly seed: number;
  readonly database: { readonly url: string; readonly ownerUrl: string };
  readonly owner: Connection;
  /** For the files of the processes. */
  readonly directory: string;
  onKill?(nth: number, requests: readonly SentRequest[]): void;
};

export type TraceStormResult = {
  readonly errors: readonly string[];
  readonly requests: readonly SentRequest[];
  readonly runs: number;
  readonly startsMs: readonly number[];
  readonly busyMs: number;
};

const PROJECTS = ['first', 'second', 'third'];
/** Between two kills. */
const [LEAST_RESPONSES, MOST_RESPONSES] = [10, 80];
/** One in this many kills is repeated during the restart. */
const TWICE = 5;
const PAGE = 50;

export async function runTraceStorm(storm: TraceStorm): Promise<TraceStormResult> {
  const { database, directory, owner, seed } = storm;
  const options: PlatformOptions = { dataDirectory: directory, database };
  const { text: key } = mintKey('service');
  await initPlatform(options, key);
  await using monitor = openStormMonitor(owner);
  const shared = { ...options, monitor, onRecord: () => undefined };
  await using one = openStormProcess({ ...shared, name: 'a' });
  await using other = openStormProcess({ ...shared, name: 'b' });
  const processes = [one, other];
  const requests: SentRequest[] = [];
  const errors: string[] = [];
  const random = createRandom(seed);
  const busyMs = await load(storm, { processes, key, requests, errors, random });
  const found = await read(await one.port(), key, requests);
  errors.push(...checkTraces(requests, found), ...(await checkTables(owner, found)));
  for (const each of processes) await each.end();
  return {
    errors: [...processes.flatMap((each) => each.errors), ...errors],
    ...{ requests, runs: found.runs.length, busyMs },
    startsMs: processes.flatMap(({ startsMs }) => startsMs),
  };
}

type Load = {
  readonly processes: readonly StormProcess[];
  readonly key: string;
  readonly requests: SentRequest[];
  readonly errors: string[];
  readonly random: Random;
};

/** Returns how long clients were sending. */
async function load({ kills, clients, onKill }: TraceStorm, scope: Load): Promise<number> {
  const { processes, requests, random } = scope;
  const counter = createCounter();
  const stop = new AbortController();
  const startedMs = performance.now();
  const sending = Promise.all(
    Array.from({ length: clients }, (_, at) => {
      const project = PROJECTS[at % PROJECTS.length] ?? '';
      return runTraceClient({ ...scope, onResponse: counter.count }, project, stop.signal);
    }),
  );
  for (let nth = 1; nth <= kills; nth += 1) {
    const responses = LEAST_RESPONSES + random(MOST_RESPONSES - LEAST_RESPONSES);
    // The one that has just responded: its response must hold, whatever it was still doing.
    const index = await Promise.race([counter.after(responses), sending.then(() => 0)]);
    await processes[index]?.kill(random(TWICE) === 0);
    onKill?.(nth, requests);
  }
  await Promise.race([counter.after(MOST_RESPONSES), sending]);
  stop.abort();
  await sending;
  return performance.now() - startedMs;
}

/** `after` resolves after so many responses, with the index of the process that sent the last of them. */
function createCounter(): { count(index: number): void; after(responses: number): Promise<number> } {
  let left = 0;
  let end: (index: number) => void = () => undefined;
  return {
    count(index) {
      left -= 1;
      if (left === 0) end(index);
    },
    after(responses) {
      left = responses;
      return new Promise((resolve) => (end = resolve));
    },
  };
}

async function read(port: number, key: string, requests: readonly SentRequest[]): Promise<Found> {
  const ask = async (path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const sessions = (await ask('/sessions?limit=100')) as readonly { id: string; name: string }[];
  const ids = [...new Set(requests.flatMap(({ parts }) => parts.map(({ run }) => run.id)))];
  const runs: FoundRun[] = [];
  for (let at = 0; at < ids.length; at += PAGE)
    runs.push(...(await readPage(ask, { id: ids.slice(at, at + PAGE) })));
  return { runs, projects: new Map(sessions.map(({ id, name }) => [id, name])) };
}

type Page = {
  readonly runs: readonly FoundRun[];
  readonly cursors: { readonly next?: string | null } | null;
};

/** A page ends early where it is large. */
async function readPage(ask: (path: string, body: object) => Promise<unknown>, query: object) {
  const runs: FoundRun[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = (await ask('/runs/query', { ...query, select: SELECTED, cursor })) as Page;
    runs.push(...page.runs);
    cursor = page.cursors?.next ?? undefined;
    if (cursor === undefined) return runs;
  }
}

const SELECTED = [
  ...['id', 'name', 'run_type', 'inputs', 'outputs', 'events', 'serialized', 'extra', 'error', 'tags'],
  ...['end_time', 'session_id', 'dotted_order', 'trace_id', 'parent_run_id', 's3_urls'],
];

/** Behind the API: one row and one place for each run, and one project for each name. */
async function checkTables(owner: Connection, { runs, projects }: Found): Promise<readonly string[]> {
  const { rows } = await connectOnce(owner, (client) =>
    client.query<Record<'rows' | 'ids' | 'places', number>>(`
      select count(*)::int as rows, count(distinct id)::int as ids,
        (select count(*)::int from trace_run_places) as places from trace_runs`),
  );
  const counted = rows[0] ?? { rows: -1, ids: -1, places: -1 };
  const wrong = Object.entries(counted).filter(([, count]) => count !== runs.length);
  const names = [...projects.values()];
  return [
    ...wrong.map(([what, count]) => `the tables have ${count} ${what} for ${runs.length} runs`),
    ...(new Set(names).size === names.length ? [] : [`projects have the same name: ${names.join(', ')}`]),
  ];
}
