// Where the files of a run are in the bucket: folders that readers take as columns. A number has the same key in each attempt. Pure.
import { toObjectKey } from '../destinations/object-prefix.ts';
import type { RunExportTask } from './export-task.ts';

type Place = Pick<RunExportTask, 'exportId' | 'workspaceId' | 'projectId' | 'runId' | 'window'>;

/** `<prefix>/export_id=…/tenant_id=…/session_id=…/runs/year=…/month=…/day=…/<run id>-<n>.parquet` */
export function fileKey(prefix: string, place: Place, number: number): string {
  return toObjectKey(
    prefix,
    `${exportFolder(place)}/${dayFolder(place.window.from)}/${place.runId}-${number}.parquet`,
  );
}

/** Of all runs of an export. */
export function exportFolder({ exportId, workspaceId, projectId }: Omit<Place, 'runId' | 'window'>): string {
  return `export_id=${exportId}/tenant_id=${workspaceId}/session_id=${projectId}/runs`;
}

/** Of the UTC day of a time. */
function dayFolder(time: string): string {
  const [year = '', month = '', day = ''] = new Date(time).toISOString().slice(0, 10).split('-');
  return `year=${year}/month=${month}/day=${day}`;
}
