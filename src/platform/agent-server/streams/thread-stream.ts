// The runs of a thread as one stream: one run after another, until the client leaves. The id of an event is that of its run and its
// number in the run: the positions of runs would tell how many runs there are of others.
import { EndedEarly } from '../../../base/http/http-response.ts';
import type { ServerEvent } from '../../api/stream/event-stream.ts';
import type { Filter } from '../access/filters.ts';
import type { Database } from '../../store/database.ts';
import type { RunEvent } from './event-queue.ts';
import { RETIRED, type RunStreams } from './run-streams.ts';
import { STATE_UPDATE } from './state-updates.ts';
import {
  findNextRun,
  findThreadPlace,
  findThreadStart,
  isThreadVisible,
  type ThreadPlace,
  type ThreadRun,
} from './thread-runs.ts';

export const THREAD_STREAM_MODES = ['run_modes', 'lifecycle', 'state_update'] as const;
export type ThreadStreamMode = (typeof THREAD_STREAM_MODES)[number];

export type ThreadToStream = {
  readonly threadId: string;
  readonly modes: ReadonlySet<ThreadStreamMode>;
  /** What the client may see: it ends the stream where it does not show the thread any more. */
  readonly filter?: Filter | undefined;
  readonly lastEventId: string | undefined;
  readonly signal: AbortSignal;
};

export type ThreadStreamParts = {
  readonly db: Pick<Database, 'selectFrom'>;
  readonly streams: Pick<RunStreams, 'read' | 'followed' | 'retiring'>;
};

type Batch = readonly ServerEvent[];

/** Runs that begin here while the client still reads an earlier one; up to 8 MiB of each wait. A client that is so far behind is cut. */
const MAX_OPENED = 16;
/** Updates of the state that wait for the client, in characters. */
const MAX_UPDATE_CHARS = 8 * 1024 * 1024;

/** Rejects with an EndedEarly between two runs when the process is replaced: another one has those that follow. */
export async function* streamThread(
  { db, streams }: ThreadStreamParts,
  { threadId, modes, filter, lastEventId, signal }: ThreadToStream,
): AsyncGenerator<Batch, void, undefined> {
  const opened = new Map<string, AsyncIterable<readonly RunEvent[]>>();
  // Readers that were opened and are not read leave with the stream.
  const ended = new AbortController();
  const reading = AbortSignal.any([signal, ended.signal]);
  const read = (runId: string, after: number) => streams.read(runId, { after, signal: reading });
  let current: string | undefined;
  let changed = Promise.withResolvers<void>();
  const onChange = (): void => changed.resolve();
  const updates = new WaitingUpdates();
  const unfollow = streams.followed.follow(threadId, {
    onOpen(runId) {
      if (runId !== current && !opened.has(runId) && opened.size < MAX_OPENED)
        opened.set(runId, read(runId, -1));
      onChange();
    },
    onChange,
    onUpdate(update) {
      if (!modes.has('state_update')) return;
      updates.add(update);
      onChange();
    },
  });
  for (const one of [signal, streams.retiring]) one.addEventListener('abort', onChange);
  try {
    let place = await findPlace(db, threadId, lastEventId);
    while (!signal.aborted) {
      changed = Promise.withResolvers();
      // It may have been deleted, and created again by somebody else.
      if (!(await isThreadVisible(db, threadId, filter))) return;
      const sent = updates.take();
      if (sent.length > 0) yield sent;
      const { run, isPartial, ...next } = await findNextRun(db, { threadId, filter }, place);
      ({ place } = next);
      if (run === undefined) {
        if (isPartial) continue;
        throwIfRetiring(streams);
        await changed.promise;
        continue;
      }
      if (opened.size === MAX_OPENED) throw new EndedEarly('the client reads too slowly');
      current = run.runId;
      const after = run.position === place.inRun?.position ? place.inRun.number : -1;
      const events = (after === -1 ? opened.get(run.runId) : undefined) ?? read(run.runId, after);
      opened.delete(run.runId);
      yield* streamOne(events, run, modes);
      if (signal.aborted) return;
      if (modes.has('run_modes') || modes.has('lifecycle')) yield [toRunDone(run)];
      throwIfRetiring(streams);
    }
  } finally {
    for (const one of [signal, streams.retiring]) one.removeEventListener('abort', onChange);
    unfollow();
    ended.abort();
  }
}

/** Without ids: a client that reconnects goes on after the last event of a run that it has. */
class WaitingUpdates {
  #waiting: string[] = [];
  #chars = 0;

  add(update: string): void {
    this.#chars += update.length;
    this.#waiting.push(update);
    // They are not sent.
    if (this.#isTooLong) this.#waiting = [];
  }

  get #isTooLong(): boolean {
    return this.#chars > MAX_UPDATE_CHARS;
  }

  take(): Batch {
    if (this.#isTooLong) throw new EndedEarly('the client reads too slowly');
    const batch = this.#waiting.map((text) => ({ event: STATE_UPDATE, text }));
    this.#waiting = [];
    this.#chars = 0;
    return batch;
  }
}

function throwIfRetiring({ retiring }: Pick<RunStreams, 'retiring'>): void {
  if (retiring.aborted) throw new EndedEarly(RETIRED);
}

async function* streamOne(
  events: AsyncIterable<readonly RunEvent[]>,
  run: ThreadRun,
  modes: ReadonlySet<ThreadStreamMode>,
): AsyncGenerator<Batch, void, undefined> {
  for await (const batch of events) {
    const wanted = batch.filter(
      ({ event }) => modes.has('run_modes') || (modes.has('lifecycle') && event === 'metadata'),
    );
    if (wanted.length > 0)
      yield wanted.map(({ id, event, data }) => ({ id: `${run.runId}.${id}`, event, text: data }));
  }
}

function toRunDone({ runId }: ThreadRun): ServerEvent {
  return { id: `${runId}.`, event: 'metadata', data: { status: 'run_done', run_id: runId } };
}

/** From which run and after which of its events a client goes on; `-1` is before all that is kept. */
async function findPlace(
  db: ThreadStreamParts['db'],
  threadId: string,
  text: string | undefined,
): Promise<ThreadPlace> {
  if (text === '-1') return { position: -1, waiting: [] };
  const [, runId, number] =
    /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d{0,15})$/.exec(text ?? '') ?? [];
  if (runId === undefined) return findThreadStart(db, threadId);
  return findThreadPlace(db, threadId, { runId, number: number === '' ? undefined : Number(number) });
}
