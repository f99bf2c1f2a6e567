// Routes by which clients send runs. A body is read, checked and spooled before the transaction, which then writes all of it or nothing.
import { z } from '../../../base/schema.ts';
import { byteUpload, multipartUpload } from '../../api/body/upload.ts';
import { traceErrors } from '../../api/contract/error-formats.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Wiring } from '../../module.ts';
import type { Transaction } from '../../store/database.ts';
import type { Artifacts } from '../artifacts/artifacts.ts';
import { saveAttachments } from '../artifacts/attachments.ts';
import { saveFeedback } from '../feedback/feedback.ts';
import { fromRunSenders } from '../access/run-access.ts';
import { placeParts } from '../projects/project-placing.ts';
import type { RunPart } from '../runs/run-part.ts';
import type { TraceStore } from '../trace-store.ts';
import { readBatchRuns } from './batch-runs.ts';
import type { MultipartAdditions } from './multipart-additions.ts';
import { type MultipartRuns, readMultipartRuns } from './multipart-runs.ts';
import { HELD_BYTES, RequestMemory } from './request-memory.ts';
import type { IngestionTimes } from './run-schema.ts';
import { readSingleRun } from './single-run.ts';

/** What `prepare` has read. */
type Received = {
  readonly parts: readonly RunPart[];
  readonly additions?: MultipartAdditions;
  readonly memory: RequestMemory;
};

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
    receive: async (read) => {
      const memory = new RequestMemory(settings.spoolDirectory);
      try {
        return { ...(await read(memory)), memory };
      } catch (error) {
        memory.close();
        throw error;
      }
    },
    async write({ db, workspaceId }, { parts: received, additions }) {
      if (received.length > 0)
        await store.mergeRuns(db, workspaceId, await placeParts(db, workspaceId, received));
      if (additions !== undefined) {
        await saveFeedback(db, workspaceId, additions.feedback, store);
        await saveAttachments(db, workspaceId, additions.attachments);
      }
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
  receive(
    read: (memory: RequestMemory) => Promise<Pick<Received, 'parts'> | MultipartRuns>,
  ): Promise<Received>;
  write(
    call: { readonly db: Transaction; readonly workspaceId: string },
    received: Received,
  ): Promise<{ readonly body: Record<string, never> }>;
};

const settle = ({ memory }: Received): void => memory.close();

const postRoute = ({ limits, times, receive, write }: Parts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/runs',
    summary: 'Send a run',
    upload: byteUpload(['application/json'], limits),
    failures: [404],
    prepare: ({ upload }) =>
      receive(async (memory) => ({
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
    upload: byteUpload(['application/json'], limits),
    failures: [404],
    prepare: ({ upload, params }) => {
      const context = { kind: 'patch', id: params.run_id.toLowerCase(), ...times() } as const;
      return receive(async (memory) => ({ parts: await readSingleRun(upload, memory, context) }));
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
    prepare: ({ upload }) =>
      receive((memory) => readMultipartRuns(upload, { memory, artifacts, ...times() })),
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
    upload: byteUpload(['application/json'], limits),
    failures: [404],
    prepare: ({ upload }) => {
      const context = { ...times(), maxRuns: limits.parts };
      return receive(async (memory) => ({ parts: await readBatchRuns(upload, memory, context) }));
    },
    handle: (call, received) => write(call, received),
    settle,
  });
