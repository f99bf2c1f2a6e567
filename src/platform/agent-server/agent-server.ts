// One agent server in its process: what the module starts, and the routes over it. Nothing here loads code of the deployment:
// that runs in workers alone.
import type { Access } from '../api/access.ts';
import type { Fallback } from '../api/contract/fallback.ts';
import type { ErrorFormat } from '../api/contract/error-formats.ts';
import type { Metrics } from '../api/metrics.ts';
import type { DocumentOptions } from '../api/openapi/documents.ts';
import type { Route } from '../api/route.ts';
import type { Server } from '../api/server.ts';
import type { Module } from '../module.ts';
import { createControlAccess } from './access/control-access.ts';
import { createGatewayAccess } from './access/gateway-access.ts';
import { createKeyAccess } from './access/key-access.ts';
import { createAppFallback } from './app/app-fallback.ts';
import { createAssistantRoutes } from './assistants/assistant-routes.ts';
import type { Deployment } from './configuration/deployment.ts';
import type { AgentSettings } from './configuration/settings.ts';
import { type RunningParts, startParts } from './running-parts.ts';
import { createRunRoutes } from './runs/run-routes.ts';
import { createThreadStreamRoute } from './streams/thread-stream-route.ts';
import { type ControlParts, createControlRoutes } from './system/control-routes.ts';
import { withAgentDocuments } from './system/document-routes.ts';
import { errorsOf, finishRoutes, toCors } from './system/finished-routes.ts';
import { createLaterRoutes } from './system/later-routes.ts';
import { createTruncateRoute } from './system/truncate-route.ts';
import { createThreadRoutes } from './threads/thread-routes.ts';

export type AgentServer = {
  readonly module: Module;
  readonly errors: ErrorFormat;
  withDocuments(options: DocumentOptions): readonly Route[];
  onMetrics(metrics: Metrics): void;
  onServer(server: Pick<Server, 'running' | 'streams'>): void;
  /** The application of the deployment. */
  fallback(): Fallback | undefined;
};

type Served = { readonly deployment: Deployment; readonly settings: AgentSettings };

export function createAgentServer(served: Served): AgentServer {
  const { http } = served.deployment;
  const { settings } = served;
  const finish = (routes: readonly Route[]): readonly Route[] => finishRoutes(routes, http);
  let metrics: Metrics | undefined;
  let server: Pick<Server, 'running' | 'streams'> | undefined;
  let running: RunningParts | undefined;
  /** Routes are made after the start. */
  const parts = (): RunningParts => {
    if (running === undefined) throw new Error('the agent server has not started');
    return running;
  };
  return {
    errors: errorsOf(http),
    fallback() {
      if (!http.hasApp) return undefined;
      const { workers, gate } = parts();
      const format = { errors: errorsOf(http), cors: toCors(http.cors) };
      return { ...createAppFallback(workers, gate.appAccess), ...format };
    },
    onMetrics: (created) => void (metrics = created),
    onServer: (opened) => void (server = opened),
    withDocuments: ({ routes, version, isReady }) => [
      ...withAgentDocuments({
        ...{ routes, version, isReady, finish, access: parts().gate.access },
        servedAs: settings.servedAs,
        isDisabled: http.disabled.has('meta'),
        operators: operatorsOf(settings, parts()),
        metrics: () => metrics,
      }),
      ...controlRoutesOf(parts(), () => server),
    ],
    module: {
      name: 'agent-server',
      async start(context) {
        await using opened = new AsyncDisposableStack();
        running = await startParts(context, served, opened);
        const { queue, streams } = running;
        const closing = opened.move();
        const drain = (): Promise<void> => {
          streams.retire();
          return queue.drain();
        };
        return { drain, close: () => closing.disposeAsync() };
      },
      routes: () => finish(routesOf(served, parts())),
    },
  };
}

/** A handler lets users of the deployment in: of those who are not, the ones with a key operate it. */
function operatorsOf({ access }: AgentSettings, { gate, keys, callers }: RunningParts): Access | undefined {
  if (access !== 'handler') return gate.access;
  if (callers !== undefined) return createGatewayAccess({ callers, readHeaders: () => ({}) });
  return keys && createKeyAccess({ keys, readHeaders: () => ({}) });
}

/** Of an instance of a deployment. No prefix of the configuration is before their paths. */
function controlRoutesOf(
  { callers, queue, streams }: RunningParts,
  server: ControlParts['server'],
): readonly Route[] {
  if (callers === undefined) return [];
  return createControlRoutes({ access: createControlAccess(callers), queue, streams, server });
}

function routesOf({ deployment, settings }: Served, parts: RunningParts): readonly Route[] {
  return [
    ...createAssistantRoutes({ ...parts, deployment }),
    ...createThreadRoutes({ ...parts, deployment }),
    createThreadStreamRoute(parts),
    ...createRunRoutes({ ...parts, deployment, threadPendingRuns: settings.threadPendingRuns }),
    ...createLaterRoutes(parts.gate.access),
    ...(settings.allowsTruncate ? [createTruncateRoute(parts.gate.access)] : []),
  ];
}
