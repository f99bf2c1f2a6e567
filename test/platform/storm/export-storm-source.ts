// The runs that a storm of exports exports: some of each of 30 days, sent by the API.
import { randomUUID } from 'node:crypto';
import type { Ask } from './export-storm-api.ts';

export const DAYS = 30;
const PROJECT = 'storm';
const PER_REQUEST = 500;
const DAY_MS = 86_400_000;

export type Source = {
  readonly projectId: string;
  readonly from: string;
  readonly to: string;
  /** The ids of each day. */
  readonly ids: ReadonlyMap<string, readonly string[]>;
};

export async function sendSource(ask: Ask, rows: number): Promise<Source> {
  const endMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const starts = Array.from({ length: DAYS }, (_, at) => endMs - (DAYS - at) * DAY_MS);
  const ids = new Map<string, string[]>();
  const runs = starts.flatMap((startMs) => {
    const made = Array.from({ length: rows }, (_, at) =>
      createRun(startMs + Math.floor((at * DAY_MS) / rows)),
    );
    ids.set(
      toDay(startMs),
      made.map(({ id }) => id),
    );
    return made;
  });
  for (let at = 0; at < runs.length; at += PER_REQUEST)
    await ask('POST', '/runs/batch', { post: runs.slice(at, at + PER_REQUEST) });
  const found = (await ask('GET', `/sessions?name=${PROJECT}`)) as readonly { readonly id: string }[];
  const [from = 0] = starts;
  return { projectId: found[0]?.id ?? '', from: toTime(from), to: toTime(endMs), ids };
}

function createRun(startMs: number) {
  const id = randomUUID();
  const time = new Date(startMs).toISOString();
  return {
    ...{ id, trace_id: id, session_name: PROJECT, name: 'storm', run_type: 'chain' },
    ...{ start_time: time, end_time: time, inputs: { id, text: 'x'.repeat(200) }, outputs: { id } },
    dotted_order: `${time.replace(/[-:.]/g, '').replace('Z', '000Z')}${id}`,
  };
}

function toTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function toDay(ms: number): string {
  return toTime(ms).slice(0, 10);
}
