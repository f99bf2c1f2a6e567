// Loads the code of a deployment: its graphs, its authentication and its application, as far as this worker is for them.
import { loadApp } from './app/app-method.ts';
import { loadAuth } from './auth/load-auth.ts';
import { loadGraphs } from './graphs/load-graphs.ts';
import type { DeploymentToLoad } from './protocol/messages.ts';
import type { LoadedParts } from './serve-worker.ts';

/** Throws a LoadError. */
export async function loadDeployment(deployment: DeploymentToLoad): Promise<LoadedParts> {
  // Handlers alone need no library, which is most of the memory of a worker.
  const hasGraphs = Object.keys(deployment.graphs).length > 0;
  const { methods, library } = hasGraphs ? await loadGraphs(deployment) : { methods: {}, library: '' };
  const auth = deployment.auth === undefined ? undefined : await loadAuth(deployment.auth);
  const app = deployment.app === undefined ? undefined : await loadApp(deployment.app);
  return {
    methods: { ...methods, ...auth?.methods },
    app,
    loaded: { library, hasAuth: auth !== undefined, hasApp: app !== undefined },
  };
}
