// The control plane: listeners, deployments and their revisions, the sources that they are built from, and their logs.
import { openSourceStore, sourcePlaceOf, type SourceStore } from '../deployments/source-store.ts';
import { mount } from '../api/contract/mount.ts';
import type { Module, Wiring } from '../module.ts';
import { readMachineId } from '../store/data-directory/machine-id.ts';
import { createDeploymentRoutes } from './deployments/deployment-routes.ts';
import { createRevisionRoutes } from './deployments/revision-routes.ts';
import { listenerRoutes } from './listener-routes.ts';
import { logRoutes } from './logs/log-routes.ts';
import { createSourceRoutes } from './sources/source-routes.ts';
import { startSourceSweep } from './sources/source-sweep.ts';
import { upkeepJobs } from './upkeep.ts';

export const controlPlane: Module = {
  name: 'control-plane',
  routes: (wiring) => mount(createRoutes(wiring), { under: ['', '/api-host'] }),
  jobs: upkeepJobs,
  start: async ({ config, store, log }) => startSourceSweep({ open: () => openSources(config), store, log }),
};

function createRoutes({ config, vault }: Wiring) {
  const { quotas, registry } = config.deployments;
  const writing = { vault, quotas, hasRegistry: registry !== undefined };
  let opened: Promise<SourceStore> | undefined;
  const sources = (): Promise<SourceStore> => (opened ??= openSources(config));
  return [
    ...listenerRoutes,
    ...createDeploymentRoutes(writing),
    ...createRevisionRoutes(writing),
    ...createSourceRoutes({ quotas, registry, sources }),
    ...logRoutes,
  ];
}

async function openSources(config: Wiring['config']): Promise<SourceStore> {
  return openSourceStore(sourcePlaceOf(config, await readMachineId(config.dataDirectory)));
}
