// The routes that create a run: in the background, with its events as the response, or with its result.
import { byteStream, eventStream } from '../../api/responses.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Database } from '../../store/database.ts';
import type { PooledTransaction } from '../../store/pool/pooled-transaction.ts';
import { streamRun } from '../streams/run-events.ts';
import { z } from '../../../base/schema.ts';
import { announce } from './cancellation.ts';
import { type CreatedRun, createRun } from './run-creation.ts';
import { RUN_BODY_RULES, type RunBody, runBody } from './run-body.ts';
import { cancelWhenLeft } from './run-cancelling.ts';
import { locationOf, ofThread, type RunPlace, type RunRouteParts, UNTRACKED } from './run-parts.ts';
import { type PreparedRun, prepareRun } from './run-preparation.ts';
import { waitForResult } from './run-result.ts';
import { run, toRun } from './run-shape.ts';

const nothing = z.strictObject({});

/** On a thread, and without one. */
export function createCreationRoutes(parts: RunRouteParts): readonly Route[] {
  return [
    ...ofPath(parts, { path: '/threads/{thread_id}/runs', params: ofThread, on: 'on a thread' }),
    ...ofPath(parts, { path: '/runs', params: nothing, on: 'without a thread' }),
  ];
}

type Place = { readonly path: string; readonly params: z.ZodObject; readonly on: string };

function ofPath(parts: RunRouteParts, place: Place): readonly Route[] {
  return [createOne(parts, place), streamOne(parts, place), waitForOne(parts, place)];
}

function shared({ gate }: RunRouteParts, { params }: Place) {
  return {
    ...({ method: 'POST', tag: 'Runs', access: gate.access, tracking: UNTRACKED, params } as const),
    ...({ body: runBody, bodyRules: RUN_BODY_RULES, failures: [403, 404, 409, 413] } as const),
  };
}

const createOne = (parts: RunRouteParts, place: Place): Route => {
  const creation = createCreation(parts);
  return defineRoute({
    ...{ ...shared(parts, place), path: place.path, summary: `Create a run ${place.on}` },
    responses: { 200: run },
    prepare: (call) => prepareRun(parts, call, threadIdOf(call.params)),
    async handle({ db, body }, prepared) {
      const created = await creation.write(db, body, { ...prepared, streamedBy: null });
      return creation.remember({ body: toRun(created.row), fields: fieldsOf(created, prepared) }, created);
    },
    after: ({ body }, outcome) => creation.announce(body, outcome),
    settle: ({ place }) => place?.release(),
  });
};

const streamOne = (parts: RunRouteParts, place: Place): Route => {
  const creation = createCreation(parts);
  const { streams } = parts;
  return defineRoute({
    ...{
      ...shared(parts, place),
      path: `${place.path}/stream`,
      summary: `Create a run ${place.on}, and follow it`,
    },
    responses: { 200: eventStream<RunPlace>({ onDrain: 'cut' }) },
    prepare: (call) => prepareRun(parts, call, threadIdOf(call.params)),
    async handle({ db, body }, prepared) {
      const created = await creation.write(db, body, { ...prepared, streamedBy: streams.processId });
      const fields = fieldsOf(created, prepared);
      // A client that reconnects without stored events would lose some.
      const again = `${fields['Content-Location']}/stream`;
      const more = body.stream_resumable === true ? { Location: again } : {};
      return creation.remember({ source: placeOf(created), fields: { ...fields, ...more } }, created);
    },
    after: ({ body }, outcome) => creation.announce(body, outcome),
    settle: ({ place }) => place?.release(),
    stream: ({ body, signal }, place) =>
      streamRun(streams, {
        ...{ runId: place.runId, lastEventId: '-1', signal },
        ...(body.on_disconnect === 'cancel' ? { onLeft: cancelWhenLeft(parts, place, signal) } : {}),
      }),
  });
};

const waitForOne = (parts: RunRouteParts, place: Place): Route => {
  const creation = createCreation(parts);
  const { streams } = parts;
  return defineRoute({
    ...{
      ...shared(parts, place),
      path: `${place.path}/wait`,
      summary: `Create a run ${place.on}, and wait for it`,
    },
    responses: { 200: byteStream<RunPlace>('application/json') },
    prepare: (call) => prepareRun(parts, call, threadIdOf(call.params)),
    async handle({ db, body }, prepared) {
      const created = await creation.write(db, body, { ...prepared, streamedBy: null });
      const location = `${locationOf(placeOf(created), false)}/join`;
      const fields = { ...fieldsOf(created, prepared), Location: location };
      return creation.remember({ source: placeOf(created), fields }, created);
    },
    after: ({ body }, outcome) => creation.announce(body, outcome),
    settle: ({ place }) => place?.release(),
    stream: ({ body, signal, db }, place) =>
      waitForResult({
        ...{ streams, runId: place.runId, db, signal },
        ...(body.on_disconnect === 'cancel' ? { onLeft: cancelWhenLeft(parts, place, signal) } : {}),
      }),
  });
};

/** What a transaction has created reaches the phase that follows its commit by its outcome. */
function createCreation(parts: RunRouteParts) {
  const { vault, deployment, threadPendingRuns } = parts;
  const { graphs, defaultConfigs } = deployment;
  const known = new WeakMap<object, Created>();
  return {
    async write(db: Database, body: RunBody, prepared: Prepared): Promise<Created> {
      const { place, ...given } = prepared;
      const created = await createRun(
        // The pipeline runs every POST in a transaction of its pool.
        db as PooledTransaction,
        { vault, graphs, defaultConfigs, threadPendingRuns },
        { ...given, body, owner: place?.owner },
      );
      return { ...created, prepared };
    },
    remember<T extends object>(outcome: T, created: Created): T {
      known.set(outcome, created);
      return outcome;
    },
    async announce(body: RunBody, outcome: object): Promise<void> {
      const created = known.get(outcome);
      if (created === undefined) return;
      const { cancelled } = created;
      announce(parts, cancelled, body.multitask_strategy === 'rollback' ? 'rollback' : 'interrupt');
      await startOrOffer(parts, body, created);
    },
  };
}

type Prepared = PreparedRun & { readonly streamedBy: string | null };
type Created = CreatedRun & { readonly prepared: Prepared };

async function startOrOffer({ queue }: RunRouteParts, body: RunBody, created: Created): Promise<void> {
  const { party, begun, prepared } = created;
  const { place, user } = prepared;
  if (begun !== undefined && place !== undefined) {
    // Read with the commit. A worker asks for what could not be.
    const latest = await begun.latest.catch(() => undefined);
    return place.start(begun.claim, { user, latest });
  }
  // For this run itself, or for another.
  place?.release();
  queue.offer({ ...placeOf(created), party, isDue: (body.after_seconds ?? 0) === 0 });
}

function threadIdOf(params: unknown): string | undefined {
  return (params as { readonly thread_id?: string }).thread_id;
}

function placeOf({ row }: CreatedRun): RunPlace {
  return { runId: row.run_id, threadId: row.thread_id };
}

function fieldsOf(created: CreatedRun, { threadId }: PreparedRun): { readonly 'Content-Location': string } {
  return { 'Content-Location': locationOf(placeOf(created), threadId === undefined) };
}
