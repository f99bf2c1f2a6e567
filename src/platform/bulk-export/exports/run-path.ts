// Where the files of a run are, as its record shows it. Pure.
import { dirname } from 'node:path/posix';
import { fileKey } from '../files/file-key.ts';
import type { RunRow } from './export-reading.ts';

type OfRun = Pick<RunRow, 'config' | 'id' | 'export_id' | 'workspace_id' | 'session_id' | 'window_start'>;

/** `prefix`: of the destination; `path`: of the day. Both begin with the bucket where the destination says so. */
export function pathOfRun(run: OfRun): { readonly prefix: string; readonly path: string } {
  const { config, id: runId, window_start: from } = run;
  const place = { exportId: run.export_id, workspaceId: run.workspace_id, projectId: run.session_id, runId };
  const folder = dirname(fileKey(config.prefix, { ...place, window: { from } }, 0));
  return {
    prefix: withBucket(config, config.prefix.replace(/\/$/, '')),
    path: withBucket(config, folder),
  };
}

function withBucket(
  { include_bucket_in_prefix: isIncluded, bucket_name: bucket }: OfRun['config'],
  path: string,
): string {
  return [isIncluded ? bucket : '', path].filter((part) => part !== '').join('/');
}
