// Routes by which clients send runs. A body is read, checked and spooled before the transaction, which then writes all of it or nothing.
import { z } from '../../../base/schema.ts';
import { byteUpload, multipartUpload } from '../../api/body/upload.ts';
import { traceErrors } from '../../api/contract/error-formats.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Wiring } from '../../module.ts';
import type { Reader } from '../../store/database.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { fromRunSenders } from '../access/run-access.ts';
import type { TraceStore } from '../trace-store.ts';
import { readBatchRuns } from './batch-runs.ts';
import { readMultipartRuns } from './multipart-runs.ts';
import { HELD_BYTES, RequestMemory } from './request-memory.ts';
import type { IngestionTimes } from './run-schema.ts';
import { type ReceivedRuns, type WriteCall, writeRuns } from '../runs/run-writing.ts';
import { readSingleRun } from './single-run.ts';

/** What `prepare` has read. */
type Received = ReceivedRuns & { readonly memory: RequestMemory };

const shared = {
  tag: 'Runs',
  errors: traceErrors,
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
  artifacts: Artifacts,
  settings: Wiring['config']['traces'],
): readonly Route[] {
  const parts: Parts = {
    limits: {
      heldBytes: REQUEST_BYTES,
      maxSentBytes: settings.maxSentBytes,
      maxBytes: settings.maxContentBytes,
      maxRatio: settings.maxRatio,
      parts: settings.maxParts,
    },
    times: () => ({ now: Date.now(), keptDays: settings.retentionDays }),
    receive: async (db, read) => {
      const memory = new RequestMemory(settings.spoolDirectory);
      try {
        const received = await read(memory);
        await prepareRuns(store, db, received);
        return { ...received, memory };
      } catch (error) {
        memory.close();
        throw error;
      }
    },
    async write(call, received) {
      await writeRuns(store, call, received);
      return { body: {} };
    },
  };
  return [multipartRoute(parts, artifacts), batchRoute(parts), postRoute(parts), patchRoute(parts)];
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
  receive(db: Reader, read: (memory: RequestMemory) => Promise<ReceivedRuns>): Promise<Received>;
  write(call: WriteCall, received: Received): Promise<{ readonly body: Record<string, never> }>;
};

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

const postRoute = ({ limits, times, receive, write }: Parts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/runs',
    summary: 'Send a run',
    upload: byteUpload(['application/json'], { ...limits, schema: { type: 'object' } }),
    failures: [404],
    prepare: ({ db, upload }) =>
      receive(db, async (memory) => ({
        parts: await readSingleRun(upload, memory, { kind: 'post', ...times() }),
      })),
    handle: (call, received) => write(call, received),
    settle,
  });

const patchRoute = ({ limits, times, receive, write }: Parts): Route =>
  defineRoute({
    ...shared,
    method: 'PATCH',
    path: '/runs/{run_id}',
    summary: 'Send more of a run, before or after the run itself',
    params: z.strictObject({ run_id: z.guid() }),
    upload: byteUpload(['application/json'], { ...limits, schema: { type: 'object' } }),
    failures: [404],
    prepare: ({ db, upload, params }) => {
      const context = { kind: 'patch', id: params.run_id.toLowerCase(), ...times() } as const;
      return receive(db, async (memory) => ({ parts: await readSingleRun(upload, memory, context) }));
    },
    handle: (call, received) => write(call, received),
    settle,
  });

const multipartRoute = ({ limits, times, receive, write }: Parts, artifacts: Artifacts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/runs/multipart',
    summary: 'Send runs, their payloads, attachments and feedback as parts, which may be in any order',
    upload: multipartUpload({ ...limits, maxSentBytes: limits.maxSentBytes + FRAMING_BYTES }),
    failures: [404],
    prepare: ({ db, upload }) =>
      receive(db, (memory) => readMultipartRuns(upload, { memory, artifacts, ...times() })),
    handle: (call, received) => write(call, received),
    discard: async ({ additions }) => additions?.discard(),
    settle,
  });

const batchRoute = ({ limits, times, receive, write }: Parts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/runs/batch',
    summary: 'Send runs as an object with the lists post and patch',
    upload: byteUpload(['application/json'], { ...limits, schema: { type: 'object' } }),
    failures: [404],
    prepare: ({ db, upload }) => {
      const context = { ...times(), maxRuns: limits.parts };
      return receive(db, async (memory) => ({ parts: await readBatchRuns(upload, memory, context) }));
    },
    handle: (call, received) => write(call, received),
    settle,
  });
