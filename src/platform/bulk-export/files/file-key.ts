// Where the files of a run are in the bucket: folders that readers take as columns. A number has the same key in each attempt. Pure.
import { toObjectKey } from '../destinations/object-prefix.ts';

type Place = {
  readonly exportId: string;
  readonly workspaceId: string;
  readonly projectId: string;
  readonly runId: string;
  readonly window: { readonly from: string };
};

/** `<prefix>/export_id=…/tenant_id=…/session_id=…/runs/year=…/month=…/day=…/<run id>-<n>.parquet` */
export function fileKey(prefix: string, place: Place, number: number): string {
  return toObjectKey(
    prefix,
    `${exportFolder(place)}/${dayFolder(place.window.from)}/${place.runId}-${number}.parquet`,
  );
}

/** The limit of S3 for the name of an object. */
const MAX_KEY_BYTES = 1_024;
const ANY_ID = '00000000-0000-0000-0000-000000000000';
const ANY_PLACE: Place = {
  ...{ exportId: ANY_ID, workspaceId: ANY_ID, projectId: ANY_ID, runId: ANY_ID },
  window: { from: '2026-01-01T00:00:00Z' },
};
/** More files than a run can have within its time. */
const MAX_NUMBER = 999_999;

/** Whether a file could get a name that S3 does not take: undefined, or what is wrong with the prefix. */
export function findKeyProblem(prefix: string): string | undefined {
  const bytes = Buffer.byteLength(fileKey(prefix, ANY_PLACE, MAX_NUMBER));
  if (bytes <= MAX_KEY_BYTES) return undefined;
  const most = prefix.length - (bytes - MAX_KEY_BYTES);
  return `Input must have at most ${most} characters: S3 allows names of ${MAX_KEY_BYTES} bytes, and those of files have ${MAX_KEY_BYTES - most} more than the prefix`;
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
