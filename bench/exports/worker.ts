// One process that exports, as a worker does: the runs of an export that its argument names, at once. Prints one line of JSON: rows,
// seconds, CPU seconds and the highest resident memory.
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { destinationConfig } from '../../src/platform/bulk-export/destinations/destination-schema.ts';
import type { ExportField } from '../../src/platform/bulk-export/files/export-columns.ts';
import { exportRun, type RunExportTask } from '../../src/platform/bulk-export/files/run-export.ts';
import { noProgress, type RunProgress } from '../../src/platform/bulk-export/files/run-progress.ts';
import { Secret } from '../../src/base/secret.ts';
import { type Connection, openDatabase } from '../../src/platform/store/database.ts';
import { createRunPages } from '../../src/platform/traces/queries/run-pages.ts';
import { postgresTraceStore } from '../../src/platform/traces/store/postgres-trace-store.ts';

export type WorkerTask = {
  readonly connection: Connection;
  readonly workspaceId: string;
  readonly projectId: string;
  readonly endpoint: string;
  readonly window: { readonly from: string; readonly to: string };
  readonly compression: RunExportTask['compression'];
  readonly fields?: readonly ExportField[];
  readonly atOnce: number;
};

const task = JSON.parse(process.argv[2] ?? '') as WorkerTask;
const store = openDatabase({ connection: task.connection, maxConnections: 4, onError: () => undefined });
const config = { bucket_name: 'bench', endpoint_url: task.endpoint, region: 'us-east-1' };

async function exportOnce(): Promise<number> {
  const { workspaceId, projectId, window, compression, fields } = task;
  let progress: RunProgress = noProgress;
  await exportRun(
    {
      ...{ workspaceId, projectId, window, compression, formatVersion: 'v2_beta' },
      ...{ exportId: randomUUID(), runId: randomUUID(), ...(fields === undefined ? {} : { fields }) },
      destination: {
        config: destinationConfig.parse(config),
        credentials: { accessKeyId: 'bench', secretAccessKey: new Secret('bench') },
        addresses: {
          allowAllPrivate: false,
          allowLoopback: true,
          allowCidrs: [],
          isOwnListener: () => false,
        },
      },
    },
    {
      ...{ traces: createRunPages(postgresTraceStore), db: store.db, cancelBy: store.db },
      signal: new AbortController().signal,
      checkpoints: {
        load: async () => progress,
        beginUpload: async () => undefined,
        commitFile: async (next) => void (progress = next),
      },
    },
  );
  return progress.rows;
}

const [startMs, startCpu] = [performance.now(), process.cpuUsage()];
const rows = await Promise.all(Array.from({ length: task.atOnce }, exportOnce));
const seconds = (performance.now() - startMs) / 1000;
const { user, system } = process.cpuUsage(startCpu);
const [, kb] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
const total = rows.reduce((sum, one) => sum + one, 0);
console.log(
  JSON.stringify({ rows: total, seconds, cpuSeconds: (user + system) / 1e6, peakMb: Number(kb) / 1024 }),
);
await store.close();
