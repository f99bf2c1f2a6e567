// The routes that list, show and delete the runs of a thread.
import { InvalidInput } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Transaction } from '../../store/database.ts';
import { deleteRun, settleIdle } from './cancellation.ts';
import { ofThread, ofThreadRun, type RunRouteParts, UNTRACKED } from './run-parts.ts';
import { listRuns, noRun, readRun } from './run-reading.ts';
import { RUN_STATUSES } from './run-rows.ts';
import { run, RUN_FIELDS, runList, toRun } from './run-shape.ts';
import { lockThread, noThread } from './thread-for-run.ts';

export function createReadingRoutes(parts: RunRouteParts): readonly Route[] {
  return [list(parts), get(parts), remove(parts)];
}

const listQuery = z.strictObject({
  limit: z.int().min(1).max(1000).default(10),
  offset: z.int().min(0).max(1_000_000).default(0),
  status: z.enum(RUN_STATUSES).optional(),
  /** Once for each field, or as a JSON list. */
  select: z.array(z.string()).optional(),
});

const list = ({ gate }: RunRouteParts): Route =>
  defineRoute({
    ...{
      method: 'GET',
      path: '/threads/{thread_id}/runs',
      tag: 'Runs',
      summary: 'List the runs of a thread',
    },
    ...{ access: gate.access, tracking: UNTRACKED, params: ofThread, query: listQuery },
    responses: { 200: runList },
    failures: [400, 403, 404],
    async prepare(call) {
      const { params, query } = call;
      const select = readList(query.select, RUN_FIELDS, 'select');
      const value = { thread_id: params.thread_id, metadata: {} };
      const [search, read] = await Promise.all([
        gate.authorize(call, 'threads:search', { ...value, status: query.status ?? null }),
        gate.authorize(call, 'threads:read', value),
      ]);
      return { select, filters: [search.filter, read.filter] };
    },
    async handle({ db, params, query }, { select, filters }) {
      const page = { ...query, fields: [...new Set(select ?? RUN_FIELDS)] };
      const texts = await listRuns(db, params.thread_id, page, filters);
      return { body: `[${texts.join(',')}]` };
    },
  });

const get = ({ gate }: RunRouteParts): Route =>
  defineRoute({
    ...{ method: 'GET', path: '/threads/{thread_id}/runs/{run_id}', tag: 'Runs', summary: 'Read a run' },
    ...{ access: gate.access, tracking: UNTRACKED, params: ofThreadRun },
    responses: { 200: run },
    failures: [403, 404],
    prepare: (call) =>
      gate.authorize(call, 'threads:read', { thread_id: call.params.thread_id, metadata: {} }),
    async handle({ db, params: { thread_id: threadId, run_id: runId } }, { filter }) {
      return { body: toRun(await readRun(db, { threadId, runId }, filter)) };
    },
  });

const remove = ({ gate, queue, notices }: RunRouteParts): Route =>
  defineRoute({
    ...{ method: 'DELETE', path: '/threads/{thread_id}/runs/{run_id}', tag: 'Runs' },
    summary: 'Delete a run with its checkpoints; one that runs is stopped',
    ...{ access: gate.access, tracking: UNTRACKED, params: ofThreadRun },
    responses: { 204: null },
    failures: [403, 404],
    prepare: (call) => gate.authorize(call, 'threads:delete', { ...call.params, metadata: {} }),
    async handle({ db, params: { thread_id: threadId, run_id: runId } }, { filter }) {
      // The pipeline runs every DELETE in a transaction.
      const trx = db as Transaction;
      const thread = await lockThread(trx, threadId, filter);
      if (thread === undefined) throw noThread();
      const found = trx.selectFrom('agent_runs').select('run_id').where('run_id', '=', runId);
      if ((await found.where('thread_id', '=', threadId).executeTakeFirst()) === undefined) throw noRun();
      await deleteRun(trx, runId, threadId);
      if (thread.isTemporary)
        await trx.deleteFrom('agent_threads').where('thread_id', '=', threadId).execute();
      else await settleIdle(trx, [threadId]);
    },
    after({ params: { run_id: runId } }) {
      notices.send({ kind: 'ended', runId });
      queue.wake();
    },
  });

/** Of a list in a query, which clients send repeated, as JSON, or with commas. Throws InvalidInput. */
export function readList<T extends string>(
  sent: readonly string[] | undefined,
  allowed: readonly T[],
  name: string,
): readonly T[] | undefined {
  if (sent === undefined) return undefined;
  const values = sent.flatMap((text) => toValues(text)).filter((text) => text !== '');
  const isAllowed = (value: string): value is T => allowed.some((one) => one === value);
  const known = values.filter(isAllowed);
  if (known.length === values.length) return known;
  const at = values.findIndex((value) => !isAllowed(value));
  const msg = `Input must be ${allowed.map((one) => `'${one}'`).join(' or ')}`;
  throw new InvalidInput([{ loc: ['query', name, at], msg, type: 'enum' }]);
}

function toValues(text: string): readonly string[] {
  if (!text.startsWith('[')) return text.split(',').map((one) => one.trim());
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed.map(String) : [text];
  } catch {
    return [text];
  }
}
