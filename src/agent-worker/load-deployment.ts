// Loads the code of a deployment: its graphs, and where the configuration has them its authentication and its application.
import { loadApp } from './app/app-method.ts';
import { loadAuth } from './auth/load-auth.ts';
import { loadGraphs } from './graphs/load-graphs.ts';
import type { DeploymentToLoad } from './protocol/messages.ts';
import type { LoadedParts } from './serve-worker.ts';

/** Throws a LoadError. */
export async function loadDeployment(deployment: DeploymentToLoad): Promise<LoadedParts> {
  const { methods, library } = await loadGraphs(deployment);
  const auth = deployment.auth === undefined ? undefined : await loadAuth(deployment.auth);
  const app = deployment.app === undefined ? undefined : await loadApp(deployment.app);
  return {
    methods: { ...methods, ...auth?.methods },
    app,
    loaded: { library, hasAuth: auth !== undefined, hasApp: app !== undefined },
  };
}
