// Routes by which clients send runs. A body is read, checked and spooled before the transaction, which then writes all of it or nothing.
import { z } from '../../../base/schema.ts';
import { byteUpload, multipartUpload } from '../../api/body/upload.ts';
import { type ErrorFormat, traceErrors } from '../../api/contract/error-formats.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Wiring } from '../../module.ts';
import type { Reader } from '../../store/database.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { fromRunSenders, type Sender } from '../access/run-access.ts';
import type { TraceMeters } from '../trace-meters.ts';
import type { TraceStore } from '../trace-store.ts';
import { readBatchRuns } from './batch-runs.ts';
import { readMultipartRuns } from './multipart-runs.ts';
import { createBodyTurns } from './turns/body-turn.ts';
import { HELD_BYTES, RequestMemory } from './request-memory.ts';
import { changedRun, postedRun, runBatch } from './run-body-schema.ts';
import type { IngestionTimes } from './run-schema.ts';
import { type ReceivedRuns, type WriteCall, writeRuns, type WrittenRuns } from '../runs/run-writing.ts';
import { readSingleRun } from './single-run.ts';

/** What `prepare` has read. */
type Received = ReceivedRuns & {
  readonly memory: RequestMemory;
  readonly sentBytes: number;
  /** Of the last attempt of the transaction. */
  written?: WrittenRuns;
};

const shared = {
  tag: 'Runs',
  access: fromRunSenders,
  tracking: {
    untracked: 'programs send runs all the time, and each run says when it was received',
    inTransaction: true,
  },
  // Clients read nothing of it.
  responses: { 202: z.strictObject({}) },
} as const;

/** Of boundaries and headers of parts: clients count the bytes of runs alone. */
const FRAMING_BYTES = 512 * 1024;
/** Each request also holds buffers of its decoder and of its compressor. */
const REQUEST_BYTES = 2 * HELD_BYTES;

export function createIngestionRoutes(
  store: TraceStore,
  { artifacts, meters }: { readonly artifacts: Artifacts; readonly meters: TraceMeters },
  settings: Wiring['config']['traces'],
): readonly Route[] {
  const turns = createBodyTurns(settings.largeBodies);
  meters.watch(() => turns.waiting);
  const parts: Parts = {
    limits: {
      heldBytes: REQUEST_BYTES,
      maxSentBytes: settings.maxSentBytes,
      maxBytes: settings.maxContentBytes,
      maxRatio: settings.maxRatio,
      parts: settings.maxParts,
    },
    times: () => ({ now: Date.now(), keptDays: settings.retentionDays }),
    receive: async (call, read) => {
      const party = { organization: call.organizationId, key: fromRunSenders.callerOf(call) };
      const memory = new RequestMemory(settings.spoolDirectory, turns.open(party));
      try {
        await memory.turn.expect(call.upload.sent.announced);
        const received = await read(memory);
        await prepareRuns(store, call.db, received);
        return { ...received, memory, sentBytes: call.upload.sent.bytes };
      } catch (error) {
        memory.close();
        throw error;
      }
    },
    async write(call, received) {
      received.written = await writeRuns(store, call, received);
      return { body: {} };
    },
    common: {
      errors: meters.countErrors(traceErrors),
      after: (_call, _outcome, received) => countStored(meters, received),
    },
  };
  return [
    multipartRoute(parts, { artifacts, maxAttachments: settings.maxAttachments }),
    batchRoute(parts),
    postRoute(parts),
    patchRoute(parts),
  ];
}

type Parts = {
  readonly limits: {
    readonly heldBytes: number;
    readonly maxSentBytes: number;
    readonly maxBytes: number;
    readonly maxRatio: number;
    readonly parts: number;
  };
  times(): IngestionTimes;
  /** Closes the memory where the reading fails. */
  receive(
    call: Sender & {
      readonly db: Reader;
      readonly upload: { readonly sent: { readonly bytes: number; readonly announced: number } };
    },
    read: (memory: RequestMemory) => Promise<ReceivedRuns>,
  ): Promise<Received>;
  write(call: WriteCall, received: Received): Promise<{ readonly body: Record<string, never> }>;
  readonly common: {
    readonly errors: ErrorFormat;
    after(call: unknown, outcome: unknown, received: Received): void;
  };
};

function countStored(meters: TraceMeters, { written, additions, memory, sentBytes }: Received): void {
  if (written === undefined) return;
  meters.onStored({
    ...{ written, sentBytes, contentBytes: memory.contentBytes },
    attachments: additions?.attachments ?? [],
    feedback: additions?.feedback.length ?? 0,
  });
}

/** No attachment is left where the days of the runs cannot be made. */
async function prepareRuns(store: TraceStore, db: Reader, { parts, additions }: ReceivedRuns): Promise<void> {
  try {
    await store.prepareRuns(db, parts);
  } catch (error) {
    await additions?.discard();
    throw error;
  }
}

const settle = ({ memory }: Received): void => memory.close();

const postRoute = ({ limits, times, receive, write, common }: Parts): Route =>
  defineRoute({
    ...{ ...shared, ...common },
    method: 'POST',
    path: '/runs',
    summary: 'Send a run',
    upload: byteUpload(['application/json'], { ...limits, schema: postedRun }),
    failures: [404],
    prepare: (call) =>
      receive(call, async (memory) => ({
        parts: await readSingleRun(call.upload, memory, { kind: 'post', ...times() }),
      })),
    handle: (call, received) => write(call, received),
    settle,
  });

const patchRoute = ({ limits, times, receive, write, common }: Parts): Route =>
  defineRoute({
    ...{ ...shared, ...common },
    method: 'PATCH',
    path: '/runs/{run_id}',
    summary: 'Send more of a run, before or after the run itself',
    params: z.strictObject({ run_id: z.guid() }),
    upload: byteUpload(['application/json'], { ...limits, schema: changedRun }),
    failures: [404],
    prepare: (call) => {
      const context = { kind: 'patch', id: call.params.run_id.toLowerCase(), ...times() } as const;
      return receive(call, async (memory) => ({ parts: await readSingleRun(call.upload, memory, context) }));
    },
    handle: (call, received) => write(call, received),
    settle,
  });

const multipartRoute = (
  { limits, times, receive, write, common }: Parts,
  { artifacts, maxAttachments }: { readonly artifacts: Artifacts; readonly maxAttachments: number },
): Route =>
  defineRoute({
    ...{ ...shared, ...common },
    method: 'POST',
    path: '/runs/multipart',
    summary: 'Send runs, their payloads, attachments and feedback as parts, which may be in any order',
    upload: multipartUpload({ ...limits, maxSentBytes: limits.maxSentBytes + FRAMING_BYTES }),
    failures: [404],
    prepare: (call) =>
      receive(call, (memory) =>
        readMultipartRuns(call.upload, { memory, artifacts, maxAttachments, ...times() }),
      ),
    handle: (call, received) => write(call, received),
    discard: async ({ additions }) => additions?.discard(),
    settle,
  });

const batchRoute = ({ limits, times, receive, write, common }: Parts): Route =>
  defineRoute({
    ...{ ...shared, ...common },
    method: 'POST',
    path: '/runs/batch',
    summary: 'Send runs as an object with the lists post and patch',
    upload: byteUpload(['application/json'], { ...limits, schema: runBatch }),
    failures: [404],
    prepare: (call) => {
      const context = { ...times(), maxRuns: limits.parts };
      return receive(call, async (memory) => ({ parts: await readBatchRuns(call.upload, memory, context) }));
    },
    handle: (call, received) => write(call, received),
    settle,
  });
