// Bulk exports: traces written as Parquet files into the buckets of tenants. Their runs are executed by a process of their own, whose
// program is `export-worker-program.ts`.
import type { Module } from '../module.ts';
import { createDestinationRoutes } from './destinations/destination-routes.ts';
import { removeExports } from './exports/export-removal.ts';
import { createExportRoutes } from './exports/export-routes.ts';
import { exportPageRoutes } from './pages/export-page-routes.ts';
import { createExportUpkeep } from './scheduling/upkeep-job.ts';

const upkeep = createExportUpkeep();

export const bulkExport: Module = {
  name: 'bulk-export',
  // Those of destinations first: an export has its id in the place of their name.
  routes: (wiring) => [
    ...createDestinationRoutes(wiring),
    ...createExportRoutes(wiring),
    ...exportPageRoutes,
  ],
  jobs: [upkeep.job, removeExports],
  async start({ config }) {
    upkeep.begin(config.exports.rules);
    return undefined;
  },
};
