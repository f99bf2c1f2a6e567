// Reads what the page of a trace shows, and no more: the beginnings of payloads, and of a large trace the first runs.
import { DomainError } from '../../../base/domain-error.ts';
import type { Reader } from '../../store/database.ts';
import { listAttachments } from '../artifacts/attachments.ts';
import { newestKey, signedAddress } from '../artifacts/signed-address.ts';
import { listBriefFeedback } from '../feedback/feedback.ts';
import { unpackInPieces } from '../runs/payload.ts';
import type { FoundRun, PayloadField, RunPlace, TraceStore } from '../trace-store.ts';
import { cutText } from '../../../base/html/visible-text.ts';
import { toTree, type TreeRun } from './run-tree.ts';
import type { ChosenRun, ShownPayload, Trace } from './trace-page.ts';

export type TraceReading = {
  readonly store: TraceStore;
  readonly db: Reader;
  readonly workspaceId: string;
};

const MAX_RUNS = 1_000;
/** A run may have a name, tags and an order of 64 KiB each. */
const BATCH = 100;
const DAY_MS = 86_400_000;
const KEPT_DAYS = 401;

/** `runId` is the run that is chosen, or that of the trace. Throws `not_found`. */
export async function readTrace(
  reading: TraceReading,
  traceId: string,
  runId: string | undefined,
): Promise<Trace> {
  const chosen = await findRun(reading, runId ?? traceId);
  if (runId !== undefined && chosen?.trace_id !== traceId) throw noTrace();
  const runs = await readRuns(reading, traceId, chosen);
  const first = runs[0];
  const shown = chosen ?? (first && (await findRun(reading, first.id)));
  if (shown === undefined) throw noTrace();
  return {
    rows: toTree(runs.slice(0, MAX_RUNS)),
    isCut: runs.length > MAX_RUNS,
    chosen: await readChosen(reading, shown),
  };
}

const noTrace = (): DomainError => new DomainError('not_found', 'There is no such trace in this workspace');

export async function findRun(
  { store, db, workspaceId }: TraceReading,
  id: string,
): Promise<FoundRun | undefined> {
  const [run] = await store.queryRuns(db, { workspaceId, ids: [id], order: 'asc', limit: 1 });
  return run;
}

/** In the order of their starts; one more than are shown, where there is one. */
async function readRuns(
  { store, db, workspaceId }: TraceReading,
  traceId: string,
  near: FoundRun | undefined,
): Promise<readonly TreeRun[]> {
  const middle = near === undefined ? undefined : Date.parse(near.start_time);
  // Where no run of the trace is known by its id, it may be anywhere.
  const [from, to] =
    middle === undefined
      ? [Date.now() - KEPT_DAYS * DAY_MS, undefined]
      : [middle - DAY_MS, middle + 2 * DAY_MS];
  const window = {
    from: new Date(Math.max(0, from)).toISOString(),
    ...(to === undefined ? {} : { to: new Date(to).toISOString() }),
  };
  const runs: TreeRun[] = [];
  let after: RunPlace | undefined;
  while (runs.length <= MAX_RUNS) {
    const page = await store.queryRuns(db, {
      ...{ workspaceId, window, order: 'asc', limit: BATCH, filter: ofTrace(traceId) },
      ...(after === undefined ? {} : { after }),
    });
    runs.push(...page.map(toTreeRun));
    after = page.at(-1);
    if (page.length < BATCH) break;
  }
  return runs;
}

function ofTrace(traceId: string) {
  const value = { type: 'text', text: traceId } as const;
  return { kind: 'column', column: 'trace_id', test: { is: 'equal', value } } as const;
}

/** Of its name no more than is shown: a page has a thousand of them. */
function toTreeRun(run: FoundRun): TreeRun {
  const { id, session_id, trace_id, parent_run_id, run_type, status, start_time, end_time, total_tokens } =
    run;
  const rest = {
    id,
    session_id,
    trace_id,
    parent_run_id,
    run_type,
    status,
    start_time,
    end_time,
    total_tokens,
  };
  return { ...rest, name: cutText(run.name, 200), nameBytes: Buffer.byteLength(run.name) };
}

const FIELDS = ['error', 'inputs', 'outputs', 'extra', 'events', 'serialized'] as const;
const MAX_FEEDBACK = 50;

async function readChosen(reading: TraceReading, run: FoundRun): Promise<ChosenRun> {
  const { db, workspaceId } = reading;
  const payloads = new Map<PayloadField, ShownPayload>();
  for (const field of FIELDS)
    if (run.sizes[field] !== null) payloads.set(field, await readBeginning(reading, run, field));
  const attachments = await listAttachments(db, workspaceId, [run.id]);
  const key = attachments.length === 0 ? undefined : await newestKey(db);
  return {
    ...{ run, payloads },
    attachments: attachments.map(({ name, mime_type, size, object }) => ({
      ...{ name, mime_type, size: Number(size) },
      address: key === undefined ? '' : signedAddress(key, object, Date.now()),
    })),
    feedback: await listBriefFeedback(db, workspaceId, run.id, MAX_FEEDBACK),
  };
}

/** Of a payload that is shown. */
const MAX_SHOWN_BYTES = 64 * 1024;
/** What is stored of a payload whose size is counted, and how far. */
const MAX_COUNTED_STORED = 1024 * 1024;
const MAX_COUNTED_BYTES = 64 * 1024 * 1024;

async function readBeginning(
  { store, db, workspaceId }: TraceReading,
  run: FoundRun,
  field: PayloadField,
): Promise<ShownPayload> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let isCounted = true;
  for await (const piece of unpackInPieces(store.readPayload(db, { workspaceId, run, field }))) {
    if (bytes <= MAX_SHOWN_BYTES) pieces.push(piece);
    bytes += piece.length;
    isCounted = (run.sizes[field] ?? 0) <= MAX_COUNTED_STORED && bytes <= MAX_COUNTED_BYTES;
    if (bytes > MAX_SHOWN_BYTES && !isCounted) break;
  }
  // A character that is cut in two is left out.
  const text = new TextDecoder().decode(Buffer.concat(pieces).subarray(0, MAX_SHOWN_BYTES), { stream: true });
  return { text, isWhole: bytes <= MAX_SHOWN_BYTES, bytes: isCounted ? bytes : undefined };
}
