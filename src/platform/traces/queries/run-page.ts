// A page of runs: found before the response begins, and written while it is read. It ends early once it has a certain size, with the
// cursor of what follows.
import type { Reader } from '../../store/database.ts';
import type { FoundRun, RunPlace, TraceStore } from '../trace-store.ts';
import { readFeedbackStats } from '../feedback/feedback-stats.ts';
import type { AttachmentUrls, RunField, ShownRun } from './run-fields.ts';
import { type RunReading, writeRuns } from './run-json.ts';

/** Ids of runs below those of a page. */
const MAX_DESCENDANTS = 10_000;
/** A page has at least one run, however large. */
const PAGE_BYTES = 16 * 1024 * 1024;

/** Of runs without their payloads, which are held while a client reads the page. */
const HELD_BYTES = 512 * 1024;
/** Of a run, besides what clients may make long. */
const FACTS_BYTES = 1_024;
const ID_BYTES = 40;

/** How many of the runs a page has: most have few names, tags and parents. At least one. */
export function countHeld(runs: readonly FoundRun[]): number {
  let bytes = 0;
  const end = runs.findIndex(({ name, tags, dotted_order: order, parent_run_ids: parents }) => {
    const texts = name.length + order.length + tags.reduce((sum, tag) => sum + tag.length, 0);
    bytes += FACTS_BYTES + texts + ID_BYTES * (parents.length + tags.length);
    return bytes > HELD_BYTES;
  });
  return end < 0 ? runs.length : Math.max(1, end);
}

/** Of what was looked up for runs, which is held too. */
const LOOKED_UP_BYTES = 1024 * 1024;

/** The same with what was looked up for them: the runs behind come with the next page. At least one. */
export function countLookedUp(shown: readonly ShownRun[]): number {
  let bytes = 0;
  const end = shown.findIndex(({ feedback, attachments, descendants }) => {
    bytes += sizeOf(feedback) + sizeOf(attachments);
    bytes += ID_BYTES * ((descendants?.direct.length ?? 0) + (descendants?.all.length ?? 0));
    return bytes > LOOKED_UP_BYTES;
  });
  return end < 0 ? shown.length : Math.max(1, end);
}

/** Of texts and names, and what each takes besides. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + 16;
  if (typeof value !== 'object' || value === null) return 16;
  return Object.entries(value).reduce((sum, [name, member]) => sum + name.length + 16 + sizeOf(member), 0);
}

/** Signed links to the attachments of runs, by their ids. */
export type FindAttachments = (
  db: Reader,
  workspaceId: string,
  runIds: readonly string[],
) => Promise<ReadonlyMap<string, AttachmentUrls>>;

export type Lookups = {
  readonly store: TraceStore;
  /** Without it runs have no links. */
  readonly findAttachments?: FindAttachments;
};

/** What was selected of the runs, besides their payloads. */
export async function lookUp(
  { store, findAttachments }: Lookups,
  db: Reader,
  {
    workspaceId,
    runs,
    fields,
    deadlineMs,
  }: {
    readonly workspaceId: string;
    readonly runs: readonly FoundRun[];
    readonly fields: ReadonlySet<RunField>;
    /** Of the query that found them. */
    readonly deadlineMs: number;
  },
): Promise<readonly ShownRun[]> {
  const ids = runs.map(({ id }) => id);
  const feedback = fields.has('feedback_stats')
    ? await readFeedbackStats(db, workspaceId, ids, deadlineMs)
    : undefined;
  const attachments = fields.has('s3_urls') ? await findAttachments?.(db, workspaceId, ids) : undefined;
  const descendants =
    fields.has('child_run_ids') || fields.has('direct_child_run_ids')
      ? await store.readDescendants(db, { workspaceId, runs, limit: MAX_DESCENDANTS, deadlineMs })
      : undefined;
  return runs.map((run) => ({
    run,
    feedback: feedback?.get(run.id),
    attachments: attachments?.get(run.id),
    descendants: descendants?.get(run.id),
  }));
}

export type Page = {
  readonly shown: readonly ShownRun[];
  readonly fields: ReadonlySet<RunField>;
  /** Runs follow that are not in `shown`. */
  readonly hasMore: boolean;
  toCursor(last: RunPlace): string;
};

/** `{runs, cursors}` */
export async function* writePage(
  reading: Omit<RunReading, 'fields'>,
  { shown, fields, hasMore, toCursor }: Page,
): AsyncGenerator<Buffer> {
  yield Buffer.from('{"runs":[');
  let bytes = 0;
  let written = 0;
  for await (const { pieces } of writeRuns({ ...reading, fields }, shown)) {
    if (written > 0) yield Buffer.from(',');
    for await (const piece of pieces) {
      bytes += piece.length;
      yield piece;
    }
    written += 1;
    if (bytes >= PAGE_BYTES) break;
  }
  const last = shown[written - 1]?.run;
  const next = last !== undefined && (hasMore || written < shown.length) ? toCursor(last) : null;
  yield Buffer.from(`],"cursors":${JSON.stringify({ next, prev: null })}}\n`);
}
