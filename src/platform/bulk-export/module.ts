// Bulk exports: traces written as Parquet files into the buckets of tenants.
import type { Module } from '../module.ts';
import { createDestinationRoutes } from './destinations/destination-routes.ts';

export const bulkExport: Module = {
  name: 'bulk-export',
  routes: (wiring) => createDestinationRoutes(wiring),
  migrations: [new URL('./migrations/0029-export-destinations.sql', import.meta.url)],
};
