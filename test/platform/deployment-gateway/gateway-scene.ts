// A gateway of deployments on loopback, with keys of real workspaces; what would be instances are servers of this process at unix
// sockets.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { WebSocket, WebSocketServer } from 'ws';
import { createLog } from '../../../src/base/log.ts';
import {
  createDeploymentGateway,
  type DeploymentGateway,
  type DeploymentGatewayOptions,
  type DeploymentGatewaySettings,
} from '../../../src/platform/deployment-gateway/deployment-gateway.ts';
import type {
  ServedDeployment,
  ServedInstance,
  ServedRevision,
} from '../../../src/platform/deployment-gateway/target-table.ts';
import { noProxies } from '../../../src/platform/api/client-address.ts';
import { watchRevocations } from '../../../src/platform/identity/revocation-notices.ts';
import { openNotifications } from '../../../src/platform/store/postgres/notifications.ts';
import { createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';
import { createScratch } from '../../support/scratch.ts';

export type Handle = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

export type TestInstance = ServedInstance & {
  /** The requests that reached it. */
  readonly seen: readonly IncomingMessage[];
  readonly server: Server;
  readonly sockets: WebSocketServer;
  handle: Handle;
  /** Nothing listens there any more. */
  end(): Promise<void>;
};

export type DeploymentScene = AsyncDisposable & {
  readonly api: PlatformApi;
  readonly gateway: DeploymentGateway;
  readonly organization: string;
  readonly workspace: string;
  /** Of an administrator of the organization, without a home. */
  readonly key: string;
  readonly logged: readonly string[];
  addInstance(handle?: Handle): Promise<TestInstance>;
  /** Of the workspace unless it says otherwise. */
  deployment(given?: Partial<ServedDeployment>): ServedDeployment;
  /** Served by a new instance. */
  serve(
    deployment: ServedDeployment,
    options?: Partial<Pick<ServedRevision, 'access'>> & { readonly handle?: Handle },
  ): Promise<TestInstance>;
  fetch(url: string, init?: RequestInit & { readonly key?: string | undefined }): Promise<Response>;
};

export const testSettings: DeploymentGatewaySettings = {
  listen: { host: '127.0.0.1', port: 0 },
  publicUrl: undefined,
  domain: undefined,
  connections: 1_000,
  connectionsPerAddress: 500,
  organizationRequests: 400,
};

export async function createDeploymentScene(
  given: Partial<Omit<DeploymentGatewayOptions, 'settings'>> & {
    readonly settings?: Partial<DeploymentGatewaySettings>;
  } = {},
): Promise<DeploymentScene> {
  const api = await createPlatformApi();
  const scratch = await createScratch();
  const logged: string[] = [];
  const fail = (): undefined => undefined;
  const { connection } = api.database;
  const notifications = openNotifications({ connection, onLost: fail, onError: fail });
  await watchRevocations(notifications, (id) => void api.admission.streams.sweep(id));
  const gateway = await createDeploymentGateway({
    ...{ admission: api.admission, trustedProxies: noProxies, drainMs: 1_000 },
    log: createLog('info', { write: (line) => void logged.push(line) }),
    ...given,
    settings: { ...testSettings, ...given.settings },
  });
  const organization = await api.addOrganization();
  const workspace = await api.addWorkspace(organization);
  const key = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
  const instances: TestInstance[] = [];
  let count = 0;
  const scene: DeploymentScene = {
    ...{ api, gateway, organization, workspace, key, logged },
    async addInstance(handle = (_, outgoing) => void outgoing.end('ok')) {
      count += 1;
      const instance = await openInstance(join(scratch.path, `${count}.sock`), String(count), handle);
      instances.push(instance);
      return instance;
    },
    deployment: (other) => ({
      ...{ id: crypto.randomUUID(), name: 'app', workspaceId: workspace, organizationId: organization },
      ...other,
    }),
    async serve(deployment, { access = 'gateway', handle } = {}) {
      const instance = await scene.addInstance(handle);
      const revision = { id: crypto.randomUUID(), access, instances: [instance] };
      gateway.targets.turn(deployment, revision);
      return instance;
    },
    fetch(url, { key: other = key, ...init } = {}) {
      const headers = {
        ...(other === '' ? {} : { 'X-Api-Key': other }),
        Connection: 'close',
        ...init.headers,
      };
      return fetch(url, { redirect: 'manual', ...init, headers });
    },
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await Promise.all(instances.map((one) => one.end()));
      await notifications.close();
      await api[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
  return scene;
}

async function openInstance(socketPath: string, id: string, handle: Handle): Promise<TestInstance> {
  const seen: IncomingMessage[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const server = createServer((incoming, outgoing) => {
    seen.push(incoming);
    instance.handle(incoming, outgoing);
  });
  server.on('upgrade', (incoming, socket, head) => {
    seen.push(incoming);
    sockets.handleUpgrade(incoming, socket, head, (one) => sockets.emit('connection', one));
  });
  server.listen(socketPath);
  await once(server, 'listening');
  const instance: TestInstance = {
    ...{ id, socketPath, gatewayToken: `token-of-${id}`, seen, server, sockets, handle },
    async end() {
      for (const one of sockets.clients) one.terminate();
      server.closeAllConnections();
      await new Promise<void>((done) => void server.close(() => done()));
    },
  };
  return instance;
}

/** Of a deployment at an address as `addressOf` gives it. */
export function dial(address: string, path: string, key: string): WebSocket {
  const headers = { 'X-Api-Key': key };
  return new WebSocket(`${address.replace('http', 'ws')}${path}`, { headers }).on('error', () => undefined);
}
