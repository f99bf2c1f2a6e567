// The routes that cancel runs: one, several by their ids, or all of a status.
import { z } from '../../../base/schema.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Transaction } from '../../store/database.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import { announce, type Cancelled, cancelRuns, settleIdle } from './cancellation.ts';
import { ofThreadRun, type RunRouteParts, UNTRACKED, uuid } from './run-parts.ts';
import { noRun } from './run-reading.ts';
import { lockThread, lockThreads } from './thread-for-run.ts';

export function createCancelRoutes(parts: RunRouteParts): readonly Route[] {
  return [cancelOne(parts), cancelMany(parts)];
}

const action = z.enum(['interrupt', 'rollback']).default('interrupt');
const oneQuery = z.strictObject({ wait: z.boolean().default(false), action });

const cancelOne = (parts: RunRouteParts): Route => {
  const { gate, streams } = parts;
  const done = new WeakMap<object, Cancelled>();
  return defineRoute({
    ...{ method: 'POST', path: '/threads/{thread_id}/runs/{run_id}/cancel', tag: 'Runs' },
    summary: 'Cancel a run; rollback also removes it with its checkpoints',
    ...{ access: gate.access, tracking: UNTRACKED, params: ofThreadRun, query: oneQuery },
    responses: { 202: null, 204: null },
    failures: [403, 404],
    async prepare(call) {
      const { thread_id, run_id } = call.params;
      const metadata = { run_ids: [run_id], status: 'pending' };
      return gate.authorize(call, 'threads:update', { thread_id, action: call.query.action, metadata });
    },
    async handle({ db, params, query }, { filter }) {
      const wanted = { threadId: params.thread_id, runIds: [params.run_id] };
      const cancelled = await cancelVisible(db as Transaction, wanted, query.action, filter);
      const outcome = { status: query.wait ? 204 : 202 } as const;
      done.set(outcome, cancelled);
      return outcome;
    },
    after({ query }, outcome) {
      const cancelled = done.get(outcome);
      if (cancelled !== undefined) announce(parts, cancelled, query.action);
    },
    async respond({ params, query, signal }) {
      if (!query.wait) return { status: 202 as const };
      await streams.ended(params.run_id, signal);
      signal.throwIfAborted();
      return { status: 204 as const };
    },
  });
};

/** All runs must be there and visible; those that have ended are left as they are. Throws `not_found`. */
async function cancelVisible(
  trx: Transaction,
  { threadId, runIds }: { readonly threadId: string; readonly runIds: readonly string[] },
  how: 'interrupt' | 'rollback',
  filter: Filter | undefined,
): Promise<Cancelled> {
  const thread = await lockThread(trx, threadId, filter);
  if (thread === undefined) throw noRun();
  const rows = await trx
    .selectFrom('agent_runs')
    .select('run_id')
    .where('thread_id', '=', threadId)
    .where('run_id', 'in', [...runIds])
    .execute();
  if (rows.length < new Set(runIds).size) throw noRun();
  const cancelled = await cancelRuns(trx, runIds, how);
  if (cancelled.ended.length > 0) await settleIdle(trx, [threadId]);
  return cancelled;
}

const manyBody = z
  .object({
    thread_id: uuid.nullish(),
    run_ids: z.array(uuid).min(1).max(1000).nullish(),
    status: z.enum(['pending', 'running', 'all']).nullish(),
  })
  .superRefine(({ run_ids: ids, status }, context) => {
    if ((ids ?? undefined) === undefined && (status ?? undefined) === undefined)
      context.addIssue({ code: 'custom', path: ['run_ids'], message: 'Send run_ids, or status' });
    if ((ids ?? undefined) !== undefined && (status ?? undefined) !== undefined)
      context.addIssue({ code: 'custom', path: ['status'], message: 'Send run_ids or status, not both' });
  });

const cancelMany = (parts: RunRouteParts): Route => {
  const { gate } = parts;
  const done = new WeakMap<object, Cancelled>();
  return defineRoute({
    ...{
      method: 'POST',
      path: '/runs/cancel',
      tag: 'Runs',
      summary: 'Cancel runs by their ids, or by status',
    },
    ...{ access: gate.access, tracking: UNTRACKED, query: z.strictObject({ action }), body: manyBody },
    responses: { 204: null },
    failures: [403, 404],
    async prepare(call) {
      const { thread_id, run_ids, status } = call.body;
      const metadata = { run_ids: run_ids ?? [], status: status ?? 'pending' };
      const value = { thread_id: thread_id ?? null, action: call.query.action, metadata };
      return gate.authorize(call, 'threads:update', value);
    },
    async handle({ db, body, query }, { filter }) {
      const trx = db as Transaction;
      const found = await findWanted(trx, body, filter);
      if (body.run_ids && found.length < new Set(body.run_ids).size) throw noRun();
      const outcome = {};
      done.set(outcome, await cancelOfThreads(trx, found, query.action));
      return outcome;
    },
    after({ query }, outcome) {
      const cancelled = done.get(outcome);
      if (cancelled !== undefined) announce(parts, cancelled, query.action);
    },
  });
};

type Found = { readonly run_id: string; readonly thread_id: string };

async function findWanted(
  trx: Transaction,
  { thread_id: threadId, run_ids: ids, status }: z.output<typeof manyBody>,
  filter: Filter | undefined,
): Promise<readonly Found[]> {
  const statuses = status === 'all' || !status ? (['pending', 'running'] as const) : [status];
  return trx
    .selectFrom('agent_runs as r')
    .innerJoin('agent_threads as t', 't.thread_id', 'r.thread_id')
    .select(['r.run_id', 'r.thread_id'])
    .where(whereVisible(filter, 't.metadata'))
    .$if(typeof threadId === 'string', (query) => query.where('r.thread_id', '=', threadId ?? ''))
    .$if(Array.isArray(ids), (query) => query.where('r.run_id', 'in', ids ?? []))
    .$if(!Array.isArray(ids), (query) => query.where('r.status', 'in', statuses))
    .execute();
}

async function cancelOfThreads(
  trx: Transaction,
  found: readonly Found[],
  how: 'interrupt' | 'rollback',
): Promise<Cancelled> {
  const threads = [...new Set(found.map(({ thread_id: id }) => id))];
  await lockThreads(trx, threads);
  const cancelled = await cancelRuns(
    trx,
    found.map(({ run_id: id }) => id),
    how,
  );
  if (cancelled.ended.length > 0) await settleIdle(trx, threads);
  return cancelled;
}
