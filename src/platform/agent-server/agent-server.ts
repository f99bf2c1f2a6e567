// One agent server in its process: what the module starts, and the routes over it. Nothing here loads code of the deployment:
// that runs in workers alone.
import type { ErrorFormat } from '../api/contract/error-formats.ts';
import type { Metrics } from '../api/metrics.ts';
import type { DocumentOptions } from '../api/openapi/documents.ts';
import type { Route } from '../api/route.ts';
import type { Module } from '../module.ts';
import type { Deployment } from './configuration/deployment.ts';
import type { AgentSettings } from './configuration/settings.ts';
import { agentServer } from './module.ts';
import { withAgentDocuments } from './system/document-routes.ts';
import { errorsOf, finishRoutes } from './system/finished-routes.ts';

export type AgentServer = {
  readonly module: Module;
  readonly errors: ErrorFormat;
  withDocuments(options: DocumentOptions): readonly Route[];
  onMetrics(metrics: Metrics): void;
};

export function createAgentServer({
  deployment: { http },
  settings,
}: {
  readonly deployment: Deployment;
  readonly settings: AgentSettings;
}): AgentServer {
  const finish = (routes: readonly Route[]): readonly Route[] => finishRoutes(routes, { http, settings });
  let metrics: Metrics | undefined;
  return {
    errors: errorsOf(settings),
    onMetrics: (created) => void (metrics = created),
    withDocuments: ({ routes, version, isReady }) =>
      withAgentDocuments({
        ...{ routes, version, isReady, finish, operators: undefined },
        isDisabled: http.disabled.has('meta'),
        metrics: () => metrics,
      }),
    module: { ...agentServer, routes: () => finish([]) },
  };
}
