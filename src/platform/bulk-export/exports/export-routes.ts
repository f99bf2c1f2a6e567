// `/api/v1/bulk-exports`: exports, which are created, read and cancelled, and their runs.
import { z } from '../../../base/schema.ts';
import { inWorkspace } from '../../api/access.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Wiring } from '../../module.ts';
import { databaseClock } from '../scheduling/clock.ts';
import { cancelExport } from './export-cancelling.ts';
import { createExport } from './export-creation.ts';
import { findExport, findRun, listExports, listRuns, listRunsOfSource } from './export-reading.ts';
import { toExportRecord, toRunRecord } from './export-record.ts';
import { createExportSchema, createRecordSchemas, exportChange } from './export-schema.ts';

const tag = 'Bulk exports';
const all = { path: '/api/v1/bulk-exports', tag } as const;
const exportId = { bulk_export_id: z.guid() };
const one = {
  path: '/api/v1/bulk-exports/{bulk_export_id}',
  tag,
  params: z.strictObject(exportId),
} as const;
const reads = { method: 'GET', access: inWorkspace('exports:read') } as const;
const writes = { access: inWorkspace('exports:create') } as const;

const MAX_LISTED = 1_000;
const page = {
  limit: z.int().min(1).max(MAX_LISTED).default(MAX_LISTED),
  offset: z.int().min(0).max(1_000_000).default(0),
};

type Settings = Wiring['config']['exports'];
type Parts = { readonly settings: Settings; readonly records: ReturnType<typeof createRecordSchemas> };

export function createExportRoutes({
  config: { exports: settings },
}: Pick<Wiring, 'config'>): readonly Route[] {
  const parts = { settings, records: createRecordSchemas(settings.statusCase) };
  // Before those with an id in their place.
  return [
    runsOfSourceRoute(parts),
    ...[createRoute, listRoute, readRoute, changeRoute].map((make) => make(parts)),
    runsRoute(parts),
    runRoute(parts),
  ];
}

const createRoute = ({ settings, records }: Parts): Route =>
  defineRoute({
    ...{ ...all, ...writes },
    method: 'POST',
    summary: 'Export the runs of a tracing project, once or by a schedule',
    tracking: { operation: 'create_bulk_export' },
    body: createExportSchema(settings.defaultCompression),
    responses: { 200: records.export },
    failures: [404],
    async handle({ db, workspaceId, body }) {
      const { quotas } = settings;
      const created = await createExport({ trx: db, workspaceId, clock: databaseClock, quotas }, body);
      return { body: toExportRecord(created, settings.statusCase), resources: [created.id] };
    },
  });

const listRoute = ({ settings, records }: Parts): Route =>
  defineRoute({
    ...{ ...all, ...reads },
    summary: 'List the exports of the workspace, newest first',
    tracking: { operation: 'list_bulk_exports' },
    query: z.object(page),
    responses: { 200: z.array(records.export) },
    async handle({ db, workspaceId, query }) {
      const rows = await listExports(db, workspaceId, query);
      return { body: rows.map((row) => toExportRecord(row, settings.statusCase)) };
    },
  });

const readRoute = ({ settings, records }: Parts): Route =>
  defineRoute({
    ...{ ...one, ...reads },
    summary: 'Read an export',
    tracking: { operation: 'get_bulk_export' },
    responses: { 200: records.export },
    failures: [404],
    async handle({ db, workspaceId, params: { bulk_export_id: id } }) {
      const found = await findExport(db, workspaceId, id);
      return { body: toExportRecord(found, settings.statusCase), resources: [id] };
    },
  });

const changeRoute = ({ settings, records }: Parts): Route =>
  defineRoute({
    ...{ ...one, ...writes },
    method: 'PATCH',
    summary:
      'Cancel an export, which is final; files that are complete stay, and so do exports that a schedule has made',
    tracking: { operation: 'cancel_bulk_export' },
    body: exportChange,
    responses: { 200: records.export },
    failures: [400, 404],
    async handle({ db, workspaceId, params: { bulk_export_id: id } }) {
      const cancelled = await cancelExport({ trx: db, workspaceId, clock: databaseClock }, id);
      return { body: toExportRecord(cancelled, settings.statusCase), resources: [id] };
    },
  });

const runsRoute = ({ settings, records }: Parts): Route =>
  defineRoute({
    ...{ ...one, ...reads },
    path: '/api/v1/bulk-exports/{bulk_export_id}/runs',
    summary: 'List the runs of an export, one for each UTC day',
    tracking: { operation: 'get_bulk_export_runs' },
    responses: { 200: z.array(records.run) },
    failures: [404],
    async handle({ db, workspaceId, params: { bulk_export_id: id } }) {
      const rows = await listRuns(db, workspaceId, id);
      return { body: rows.map((row) => toRunRecord(row, settings.statusCase)), resources: [id] };
    },
  });

const runRoute = ({ settings, records }: Parts): Route =>
  defineRoute({
    ...reads,
    tag,
    path: '/api/v1/bulk-exports/{bulk_export_id}/runs/{export_run_id}',
    summary: 'Read a run of an export',
    params: z.strictObject({ ...exportId, export_run_id: z.guid() }),
    tracking: { operation: 'get_bulk_export_run' },
    responses: { 200: records.run },
    failures: [404],
    async handle({ db, workspaceId, params: { bulk_export_id: id, export_run_id: runId } }) {
      const found = await findRun(db, workspaceId, { exportId: id, runId });
      return { body: toRunRecord(found, settings.statusCase), resources: [runId] };
    },
  });

const runsOfSourceRoute = ({ settings, records }: Parts): Route =>
  defineRoute({
    ...{ ...reads, tag },
    path: '/api/v1/bulk-exports/runs',
    summary: 'List the runs of all exports that a schedule has made, newest first',
    tracking: { operation: 'get_bulk_export_runs_filtered' },
    query: z.object({ source_bulk_export_id: z.guid().describe('The schedule'), ...page }),
    responses: { 200: z.array(records.run) },
    failures: [404],
    async handle({ db, workspaceId, query: { source_bulk_export_id: sourceId, ...rest } }) {
      const rows = await listRunsOfSource(db, workspaceId, { sourceId, ...rest });
      return { body: rows.map((row) => toRunRecord(row, settings.statusCase)), resources: [sourceId] };
    },
  });
