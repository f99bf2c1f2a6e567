// GET /threads/{thread_id}/stream: the runs of a thread one after another, until the client leaves.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { eventStream } from '../../api/responses.ts';
import { defineRoute, type Route, UNTRACKED_READ } from '../../api/route.ts';
import type { Filter } from '../access/filters.ts';
import type { Gate } from '../access/gate.ts';
import type { RunStreams } from './run-streams.ts';
import { isThreadVisible } from './thread-runs.ts';
import { streamThread, THREAD_STREAM_MODES, type ThreadStreamMode } from './thread-stream.ts';

export type ThreadStreamRouteParts = {
  readonly gate: Gate;
  readonly streams: Pick<RunStreams, 'read' | 'followed' | 'retiring'>;
};

const mode = z.enum(THREAD_STREAM_MODES);

export function createThreadStreamRoute({ gate, streams }: ThreadStreamRouteParts): Route {
  return defineRoute({
    method: 'GET',
    path: '/threads/{thread_id}/stream',
    tag: 'Threads',
    summary: 'Stream the runs of a thread one after another',
    access: gate.access,
    tracking: UNTRACKED_READ,
    failures: [403, 404],
    params: z.object({ thread_id: z.guid().toLowerCase() }),
    // Clients name it either way.
    query: z.object({ stream_modes: z.array(mode).optional(), stream_mode: z.array(mode).optional() }),
    responses: { 200: eventStream<Filter | undefined>({ onDrain: 'cut' }) },
    prepare: async (call) => gate.authorize(call, 'threads:read', { thread_id: call.params.thread_id }),
    async handle({ db, params, query }, { filter }) {
      if (!(await isThreadVisible(db, params.thread_id, filter)))
        throw new DomainError('not_found', 'There is no such thread');
      // By which clients reconnect, from the last event that they have.
      const modes = [...(query.stream_modes ?? []), ...(query.stream_mode ?? [])];
      const again = modes.map((one) => `stream_modes=${one}`).join('&');
      const location = `/threads/${params.thread_id}/stream${again === '' ? '' : `?${again}`}`;
      return { source: filter, fields: { Location: location } };
    },
    stream({ db, params, query, signal, lastEventId }, filter) {
      const named: readonly ThreadStreamMode[] = [
        ...(query.stream_modes ?? []),
        ...(query.stream_mode ?? []),
      ];
      const modes = new Set(named.length === 0 ? (['run_modes'] as const) : named);
      return streamThread(
        { db, streams },
        { threadId: params.thread_id, modes, filter, lastEventId, signal },
      );
    },
  });
}
