// The routes that follow a run which exists: its events, or its result.
import { z } from '../../../base/schema.ts';
import { byteStream, eventStream } from '../../api/responses.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { ServerEvent } from '../../api/stream/event-stream.ts';
import { bothOf, type Filter } from '../access/filters.ts';
import type { Gate } from '../access/gate.ts';
import { streamRun } from '../streams/run-events.ts';
import { readList } from './reading-routes.ts';
import { STREAM_MODES } from './run-body.ts';
import { cancelWhenLeft } from './run-cancelling.ts';
import { locationOf, ofRun, ofThreadRun, type RunPlace, type RunRouteParts, UNTRACKED } from './run-parts.ts';
import { findRunPlace, noRun } from './run-reading.ts';
import { waitForResult } from './run-result.ts';

export function createFollowingRoutes(parts: RunRouteParts): readonly Route[] {
  return [
    join(parts),
    stream(parts, { path: '/threads/{thread_id}/runs/{run_id}/stream', params: ofThreadRun }),
    stream(parts, { path: '/runs/{run_id}/stream', params: ofRun }),
  ];
}

const joinQuery = z.strictObject({ cancel_on_disconnect: z.boolean().default(false) });
const streamQuery = joinQuery.extend({ stream_mode: z.array(z.string()).optional() });

const join = (parts: RunRouteParts): Route => {
  const { gate, streams } = parts;
  return defineRoute({
    ...{ method: 'GET', path: '/threads/{thread_id}/runs/{run_id}/join', tag: 'Runs' },
    summary: 'Wait for the result of a run',
    ...{ access: gate.access, tracking: UNTRACKED, params: ofThreadRun, query: joinQuery },
    responses: { 200: byteStream<RunPlace>('application/json') },
    failures: [403, 404],
    prepare: async (call) => ({ filter: await authorizeFollowing(gate, call) }),
    async handle({ db, params: { thread_id: threadId, run_id: runId } }, { filter }) {
      const source = await findRunPlace(db, { threadId, runId }, filter);
      if (source === undefined) throw noRun();
      const location = locationOf(source, false);
      const again = `${location}/join`;
      return { source, fields: { 'Content-Location': location, Location: again } };
    },
    stream: ({ query, signal, db }, place) =>
      waitForResult({
        ...{ streams, runId: place.runId, db, signal },
        ...(query.cancel_on_disconnect ? { onLeft: cancelWhenLeft(parts, place, signal) } : {}),
      }),
  });
};

type Following = Parameters<Gate['authorize']>[0] & {
  readonly params: Ids;
  readonly query: { readonly cancel_on_disconnect: boolean };
};

/** A client that ends the run by leaving must be one that may cancel it. */
async function authorizeFollowing(gate: Gate, call: Following): Promise<Filter | undefined> {
  const { thread_id = null, run_id } = call.params;
  const [read, cancel] = await Promise.all([
    gate.authorize(call, 'threads:read', { thread_id, metadata: {} }),
    call.query.cancel_on_disconnect
      ? gate.authorize(call, 'threads:update', {
          ...{ thread_id, action: 'interrupt' },
          metadata: { run_ids: [run_id], status: 'pending' },
        })
      : undefined,
  ]);
  return bothOf(read.filter, cancel?.filter);
}

type Streamed = {
  /** Undefined: it is not there, or hidden. */
  readonly place: RunPlace | undefined;
  readonly modes: ReadonlySet<string> | undefined;
};

const stream = (
  parts: RunRouteParts,
  { path, params }: { readonly path: string; readonly params: z.ZodObject },
): Route => {
  const { gate, streams } = parts;
  return defineRoute({
    ...{ method: 'GET', path, tag: 'Runs', summary: 'Follow the events of a run' },
    ...{ access: gate.access, tracking: UNTRACKED, params, query: streamQuery },
    responses: { 200: eventStream<Streamed>({ onDrain: 'cut' }) },
    failures: [403, 404],
    async prepare(call) {
      const modes = readList(call.query.stream_mode, STREAM_MODES as readonly string[], 'stream_mode');
      const filter = await authorizeFollowing(gate, { ...call, params: call.params as Ids });
      return { filter, modes: modes === undefined || modes.length === 0 ? undefined : new Set(modes) };
    },
    async handle({ db, params: given, query }, { filter, modes }) {
      const { thread_id: threadId, run_id: runId } = given as Ids;
      const place = await findRunPlace(db, { threadId, runId }, filter);
      if (place === undefined && filter === undefined) throw noRun();
      const location = threadId === undefined ? `/runs/${runId}` : `/threads/${threadId}/runs/${runId}`;
      // By which clients reconnect, from the last event that they have.
      const fields = { 'Content-Location': location, Location: `${location}/stream${toText(query, modes)}` };
      return { source: { place, modes }, fields };
    },
    stream({ query, signal, lastEventId }, { place, modes }) {
      if (place === undefined) return noRunEvents();
      return streamRun(streams, {
        ...{ runId: place.runId, lastEventId, modes, signal },
        ...(query.cancel_on_disconnect ? { onLeft: cancelWhenLeft(parts, place, signal) } : {}),
      });
    },
  });
};

/** As `query` was given. */
function toText(
  { cancel_on_disconnect: isCancelled }: z.output<typeof streamQuery>,
  modes: ReadonlySet<string> | undefined,
): string {
  const parts = [...(modes ?? [])].map((mode) => ['stream_mode', mode]);
  if (isCancelled) parts.push(['cancel_on_disconnect', 'true']);
  return parts.length === 0 ? '' : `?${new URLSearchParams(parts)}`;
}

type Ids = { readonly thread_id?: string; readonly run_id: string };

/** Clients of deployments with users expect an event; it says the same of a run of another and of none. */
async function* noRunEvents(): AsyncGenerator<ServerEvent, void, undefined> {
  yield { event: 'error', data: NOT_FOUND };
}

const NOT_FOUND = { error: 'NotFound', message: '404: Run not found' };
