// New exports: one that a caller asks for, with a run for each day of its window, or a schedule, which makes such an export for each of its
// intervals.
import { randomUUID } from 'node:crypto';
import { DomainError, InvalidInput } from '../../../base/domain-error.ts';
import { noWorkspace } from '../../identity/authorization.ts';
import type { Transaction } from '../../store/database.ts';
import { hasTracingProject } from '../../traces/contract.ts';
import { noDestination } from '../destinations/destinations.ts';
import { addMs, type Clock } from '../scheduling/clock.ts';
import { lockExportsOf, wakeWorkers } from '../scheduling/workspace-turn.ts';
import { type ExportRow, EXPORT_COLUMNS } from './export-reading.ts';
import type { NewExport } from './export-schema.ts';
import type { ExportStatus } from './export-states.ts';
import {
  daysOf,
  dueAt,
  type ExportWindow,
  intervalFrom,
  isTooLong,
  MAX_WINDOW_DAYS,
} from './export-window.ts';
import { formatMicros } from './export-time.ts';

export type CreationQuotas = {
  /** Of a workspace: exports that callers create in an hour, and schedules that are not cancelled. */
  readonly creationsPerHour: number;
  readonly schedules: number;
};

type Creating = {
  readonly trx: Transaction;
  readonly workspaceId: string;
  readonly clock: Clock;
  readonly quotas: CreationQuotas;
};

/** Throws `not_found` for a destination or project of another workspace, `too_many` above a quota, and InvalidInput. */
export async function createExport(creating: Creating, given: NewExport): Promise<ExportRow> {
  const { trx, workspaceId, clock, quotas } = creating;
  if (!(await lockExportsOf(trx, workspaceId))) throw noWorkspace();
  await requireTargets(trx, workspaceId, given);
  const now = await clock(trx);
  await requireQuotas(trx, workspaceId, { quotas, now, isSchedule: Boolean(given.interval_hours) });
  const { start_time: from, end_time: to, interval_hours: hours } = given;
  const common = {
    ...{ destination_id: given.bulk_export_destination_id, session_id: given.session_id, source_id: null },
    ...{ filter: given.filter ?? null, export_fields: given.export_fields ?? null },
    ...{ format_version: given.format_version, compression: given.compression },
  };
  if (to) return insertExport(trx, { ...common, workspaceId, now, window: { from, to } });
  // The schema has checked that it is there.
  return insertSchedule(trx, { ...common, workspaceId, now, from, hours: Number(hours) });
}

type Common = Pick<
  ExportRow,
  | 'destination_id'
  | 'session_id'
  | 'source_id'
  | 'filter'
  | 'export_fields'
  | 'format_version'
  | 'compression'
> & { readonly workspaceId: string; readonly now: Date };

/** With its runs. */
export async function insertExport(
  trx: Transaction,
  { workspaceId, now, window, ...common }: Common & { readonly window: ExportWindow },
): Promise<ExportRow> {
  const row = await insert(trx, {
    ...common,
    ...{ workspaceId, now, status: 'CREATED', from: window.from, to: window.to },
  });
  const runs = daysOf(window).map((day) => ({
    ...{ id: randomUUID(), workspace_id: workspaceId, export_id: row.id, destination_id: row.destination_id },
    ...{ status: 'CREATED' as const, window_start: day.from, window_end: day.to, due_at: now },
    ...{ created_at: now, updated_at: now },
  }));
  await trx.insertInto('export_runs').values(runs).execute();
  await wakeWorkers(trx, workspaceId);
  return row;
}

async function insertSchedule(
  trx: Transaction,
  { from, hours, ...common }: Common & { readonly from: string; readonly hours: number },
): Promise<ExportRow> {
  if (isTooLong({ from, to: formatMicros(common.now.getTime() * 1000) }))
    throw new InvalidInput([
      {
        ...{ loc: ['body', 'start_time'], type: 'value_error' },
        msg: `A schedule must begin at most ${MAX_WINDOW_DAYS} days ago`,
      },
    ]);
  const next = intervalFrom(from, hours);
  return insert(trx, { ...common, from, hours, nextDueAt: dueAt(next), status: 'INTERVALSCHEDULED' });
}

type Inserted = Common & {
  readonly status: ExportStatus;
  readonly from: string;
  readonly to?: string;
  readonly hours?: number;
  readonly nextDueAt?: Date;
};

async function insert(trx: Transaction, given: Inserted): Promise<ExportRow> {
  const { workspaceId, now, status, from, to = null, hours = null, nextDueAt = null, ...common } = given;
  return trx
    .insertInto('exports')
    .values({
      ...common,
      ...{ id: randomUUID(), workspace_id: workspaceId, status, start_time: from, end_time: to },
      ...{ interval_hours: hours, next_start: hours === null ? null : from, next_due_at: nextDueAt },
      ...{ created_at: now, updated_at: now },
    })
    .returning(EXPORT_COLUMNS)
    .executeTakeFirstOrThrow();
}

async function requireTargets(trx: Transaction, workspaceId: string, given: NewExport): Promise<void> {
  await trx
    .selectFrom('export_destinations')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', given.bulk_export_destination_id)
    .executeTakeFirstOrThrow(noDestination);
  if (!(await hasTracingProject(trx, workspaceId, given.session_id)))
    throw new DomainError('not_found', 'Tracing project not found');
}

const HOUR_MS = 3_600_000;

type Quoted = { readonly quotas: CreationQuotas; readonly now: Date; readonly isSchedule: boolean };

async function requireQuotas(trx: Transaction, workspaceId: string, asked: Quoted): Promise<void> {
  const { quotas, now, isSchedule } = asked;
  const own = trx.selectFrom('exports').where('workspace_id', '=', workspaceId);
  if (isSchedule) {
    const schedules = await own
      .where('status', '=', 'INTERVALSCHEDULED')
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .executeTakeFirstOrThrow();
    if (Number(schedules.count) >= quotas.schedules)
      throw new DomainError(
        'quota_exceeded',
        `A workspace may have ${quotas.schedules} scheduled bulk exports: cancel one first`,
      );
  }
  // The oldest of as many as there may be: another one is allowed when it is an hour old.
  const oldest = await own
    .where('source_id', 'is', null)
    .where('created_at', '>', addMs(now, -HOUR_MS))
    .select('created_at')
    .orderBy('created_at', 'desc')
    .offset(quotas.creationsPerHour - 1)
    .limit(1)
    .executeTakeFirst();
  if (oldest !== undefined)
    throw new DomainError(
      'too_many',
      `A workspace may create ${quotas.creationsPerHour} bulk exports in an hour: try again later`,
      oldest.created_at.getTime() + HOUR_MS - now.getTime(),
    );
}
