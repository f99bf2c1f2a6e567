// A run of a graph that takes all it can get, runs of another user beside it, and how long the server takes to say that it lives.
import { setTimeout } from 'node:timers/promises';

export const HOSTILITIES = ['loop', 'allocate', 'buffers', 'emit'] as const;
export type Hostility = (typeof HOSTILITIES)[number];

export type HostileLoad = {
  /** Of runs of the other user, in milliseconds; all ended with their result. */
  readonly runs: readonly number[];
  /** Those that did not. */
  readonly failed: readonly string[];
  /** Of `GET /ok`, in ascending order. */
  readonly oks: readonly number[];
  readonly hostile: { readonly status: string; readonly megabytes: number };
};

type Post = (user: string, path: string, body: object, signal?: AbortSignal) => Promise<Response>;

/** Until the time is over, and the run of the other user that is under way then has ended. */
export async function besideHostile(url: string, does: Hostility, seconds: number): Promise<HostileLoad> {
  const post: Post = (user, path, body, signal) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${user}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  const over = new AbortController();
  const { thread_id: thread } = (await (await post('eve', '/threads', {})).json()) as { thread_id: string };
  const body = { assistant_id: 'hostile', input: { does }, stream_mode: ['custom'] };
  const begun = await post('eve', `/threads/${thread}/runs/stream`, body, over.signal);
  const read = countBytes(begun);
  const oks = askOften(url, over.signal);
  const others = await runOthers(post, performance.now() + seconds * 1000);
  over.abort();
  const listed = await fetch(`${url}/threads/${thread}/runs`, { headers: { authorization: 'Bearer eve' } });
  const [{ status = 'gone' } = {}] = (await listed.json()) as readonly { status?: string }[];
  await post('eve', '/runs/cancel', { status: 'all' });
  const hostile = { status, megabytes: (await read) / 1_000_000 };
  return { ...others, oks: (await oks).toSorted((a, b) => a - b), hostile };
}

async function countBytes({ body }: Response): Promise<number> {
  let bytes = 0;
  try {
    for await (const chunk of body ?? []) bytes += chunk.length;
  } catch {
    // It is left in the end.
  }
  return bytes;
}

/** A request that fails counts as one that took for ever. */
async function askOften(url: string, over: AbortSignal): Promise<readonly number[]> {
  const times: number[] = [];
  while (!over.aborted) {
    const startMs = performance.now();
    const isOk = await fetch(`${url}/ok`).then(
      async (response) => (await response.text()) !== '' && response.ok,
      () => false,
    );
    times.push(isOk ? performance.now() - startMs : Number.POSITIVE_INFINITY);
    await setTimeout(10);
  }
  return times;
}

async function runOthers(post: Post, untilMs: number): Promise<Pick<HostileLoad, 'runs' | 'failed'>> {
  const [runs, failed]: [number[], string[]] = [[], []];
  while (performance.now() < untilMs) {
    const startMs = performance.now();
    const asked = await post('ada', '/runs/wait', { assistant_id: 'agent', input: { does: {} } });
    const text = await asked.text();
    if (asked.ok && text.includes('"seen":"done"')) runs.push(performance.now() - startMs);
    else failed.push(`${asked.status} ${text.slice(0, 200)}`);
    await setTimeout(50);
  }
  return { runs, failed };
}
