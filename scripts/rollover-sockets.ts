// Clients of WebSockets while what they talk to is replaced. Deployed applications respond to requests alone, so a program that speaks
// WebSocket runs here behind the same gateway and in the same fleets, with keys of the platform, and is replaced each time the platform replaces its
// deployment: each WebSocket must be closed with 1001, and be open again at once.
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { createLog } from '../src/base/log.ts';
import { Secret } from '../src/base/secret.ts';
import { noProxies } from '../src/platform/api/client-address.ts';
import { defaultLimits } from '../src/platform/api/limits.ts';
import { createAdmission } from '../src/platform/api/shares/admission.ts';
import {
  createDeploymentGateway,
  type DeploymentGateway,
} from '../src/platform/deployment-gateway/deployment-gateway.ts';
import { createInstanceControl } from '../src/platform/deployment-gateway/instance-control.ts';
import type { ServedDeployment } from '../src/platform/deployment-gateway/target-table.ts';
import { createAuthenticator } from '../src/platform/identity/authentication.ts';
import { Fleet } from '../src/platform/runner/fleet/fleet.ts';
import { startAgentProcess } from '../src/platform/runner/instances/agent-process.ts';
import { createAvailability } from '../src/platform/store/availability.ts';
import { findRunningConnections } from '../src/platform/store/embedded/postgres-server.ts';
import { openPools } from '../src/platform/store/pools.ts';
import { openPlainWorkloads } from '../test/support/plain-workloads.ts';
import type { DeploymentScene } from './deployment-scene.ts';

export type SocketResult = {
  readonly opened: number;
  /** By their codes. */
  readonly closed: ReadonlyMap<number, number>;
  readonly messages: number;
  /** From the close of a WebSocket to the first response of the next one. */
  readonly reopenedMs: readonly number[];
  readonly failures: readonly string[];
};

export type SocketRollover = {
  /** Resolves when the next revision serves; the one before is drained meanwhile. */
  replace(): Promise<void>;
  end(): Promise<SocketResult>;
};

const EVERY_MS = 250;
const PATIENCE_MS = 10_000;
const START_MS = 30_000;

/** With `count` clients; what it starts ends with `cleanup`. */
export async function openSocketRollover(
  cleanup: AsyncDisposableStack,
  scene: DeploymentScene,
  count: number,
): Promise<SocketRollover> {
  const directory = join(scene.scratch, 'sockets');
  for (const name of ['', 'run', 'build']) await mkdir(join(directory, name));
  await writeFile(join(directory, 'build', 'langgraph.json'), '{}');
  const { gateway, deployment } = await openGateway(cleanup, scene);
  const fleets = new SocketFleets(cleanup, { directory, gateway, deployment });
  await fleets.replace();
  const url = `${gateway.addressOf(deployment).replace('http', 'ws')}/ws`;
  const clients = Array.from(
    { length: count },
    () => new SocketClient(url, scene.key, () => fleets.revision),
  );
  const kept = clients.map((one) => one.keep());
  // Each of them is closed by each switch only if it is open before the first one.
  await Promise.race([Promise.all(clients.map(({ connected }) => connected)), delay(START_MS)]);
  return {
    replace: () => fleets.replace(),
    async end() {
      for (const one of clients) one.stop();
      await Promise.all(kept);
      await fleets.retired();
      return collect(clients);
    },
  };
}

/** In this process, with the keys of the platform. */
async function openGateway(cleanup: AsyncDisposableStack, { data }: DeploymentScene) {
  const found = await findRunningConnections(join(data, 'database'));
  if (typeof found === 'string') throw new Error(found);
  const log = createLog('silent', { write: () => undefined });
  const pools = openPools({
    ...{ connection: found.connection, ...createAvailability(log) },
    ...{ maxConnections: 8, hasNamedStatements: true },
  });
  cleanup.defer(() => pools.close());
  const row = pools.reads.db.selectFrom('workspaces').select(['id', 'organization_id']);
  const workspace = await row.executeTakeFirstOrThrow();
  const authenticator = createAuthenticator({ now: () => Date.now() });
  const gateway = await createDeploymentGateway({
    settings: {
      ...{ listen: { host: '127.0.0.1', port: 0 }, publicUrl: undefined, domain: undefined },
      ...{ connections: 1_024, connectionsPerAddress: 1_024, organizationRequests: 512 },
    },
    admission: createAdmission({ pools, authenticator, log, limits: defaultLimits }),
    ...{ trustedProxies: noProxies, drainMs: 1_000, log },
  });
  cleanup.defer(() => gateway.close());
  const deployment: ServedDeployment = {
    ...{ id: randomUUID(), name: 'sockets' },
    ...{ workspaceId: workspace.id, organizationId: workspace.organization_id },
  };
  return { gateway, deployment };
}

type FleetParts = {
  readonly directory: string;
  readonly gateway: DeploymentGateway;
  readonly deployment: ServedDeployment;
};

class SocketFleets {
  revision = 0;
  readonly #parts: FleetParts;
  readonly #workloads = openPlainWorkloads();
  readonly #retiring: Promise<void>[] = [];
  #current: Fleet | undefined;

  constructor(cleanup: AsyncDisposableStack, parts: FleetParts) {
    this.#parts = parts;
    cleanup.defer(() => this.#workloads.close());
  }

  async replace(): Promise<void> {
    const { gateway, deployment } = this.#parts;
    const next = this.#open(String(this.revision + 1));
    next.scaleTo(1);
    const failed = await next.whenReady();
    if (failed !== undefined) throw new Error(failed);
    const before = this.#current;
    this.#current = next;
    this.revision += 1;
    const revision = { id: String(this.revision), access: 'gateway', instances: next.served } as const;
    gateway.targets.turn(deployment, revision);
    if (before !== undefined) this.#retiring.push(before.retire());
  }

  async retired(): Promise<void> {
    await Promise.all(this.#retiring);
    await this.#current?.close(0);
  }

  #open(revision: string): Fleet {
    const { directory, gateway, deployment } = this.#parts;
    const ground = {
      ...{
        workloads: this.#workloads,
        createControl: createInstanceControl,
        directory: join(directory, 'run'),
      },
      program: {
        command: [process.execPath, join(import.meta.dirname, 'rollover-socket-server.ts')],
        files: [],
      },
    };
    const spec = {
      build: { directory: join(directory, 'build'), configPath: 'langgraph.json' },
      identity: {
        id: deployment.id,
        name: deployment.name,
        revisionId: revision,
        access: 'gateway' as const,
      },
      secrets: {
        variables: new Map([['REVISION', new Secret(revision)]]),
        masterKey: new Secret('none'),
        database: { directory, name: 'none', user: 'none', password: new Secret('none') },
      },
      ...{ user: undefined, limits: {}, network: 'none' as const, maxConnections: 5 },
      ...{ traces: undefined, gatewayToken: randomBytes(32).toString('base64url') },
      onLine: () => undefined,
    };
    return new Fleet({
      start: (signal) => startAgentProcess(ground, spec, signal),
      take: () => ({ release: () => undefined }),
      onChange: () => undefined,
      onRestart: (reason) => console.log(`  the program of WebSockets ended: ${reason}`),
      targets: gateway.targets,
    });
  }
}

/** Never tries again: a connection that is refused is a failure. */
class SocketClient {
  readonly failures: string[] = [];
  readonly codes: number[] = [];
  readonly reopenedMs: number[] = [];
  opened = 0;
  messages = 0;
  readonly #url: string;
  readonly #key: string;
  /** That serves now. */
  readonly #revision: () => number;
  readonly #connected = Promise.withResolvers<void>();
  #isStopped = false;
  #socket: WebSocket | undefined;

  constructor(url: string, key: string, revision: () => number) {
    this.#url = url;
    this.#key = key;
    this.#revision = revision;
  }

  /** Resolves with the first response. */
  get connected(): Promise<void> {
    return this.#connected.promise;
  }

  async keep(): Promise<void> {
    let closedMs: number | undefined;
    while (!this.#isStopped) closedMs = await this.#talk(closedMs);
  }

  stop(): void {
    this.#isStopped = true;
    this.#socket?.close(1000);
  }

  /** Until it is closed; returns when that was. */
  async #talk(closedMs: number | undefined): Promise<number> {
    const socket = new WebSocket(this.#url, { headers: { 'X-Api-Key': this.#key } });
    this.#socket = socket;
    const closed = once(socket, 'close').then(([code]) => Number(code));
    const expected = this.#revision();
    let sent = 0;
    let received = 0;
    socket.on('error', ({ message }) => this.#fail(`a WebSocket: ${message}`));
    socket.on('open', () => {
      this.opened += 1;
      socket.send(String((sent += 1)));
    });
    socket.on('message', (data) => {
      const [revision, number] = String(data).split(' ');
      received += 1;
      this.messages += 1;
      this.#connected.resolve();
      if (Number(number) !== received) this.#fail(`message ${number} came in place of ${received}`);
      if (Number(revision) < expected) this.#fail(`revision ${revision} responded, and ${expected} serves`);
      if (received === 1 && closedMs !== undefined) this.reopenedMs.push(performance.now() - closedMs);
    });
    const isClosed = closed.then(() => true);
    while (!(await Promise.race([isClosed, delay(EVERY_MS, false)])))
      if (socket.readyState === WebSocket.OPEN && received === sent) socket.send(String((sent += 1)));
      else if (
        received < sent &&
        (await Promise.race([isClosed, delay(PATIENCE_MS, false)])) === false &&
        received < sent
      )
        this.#fail(`no response to message ${sent}`);
    const code = await closed;
    if (!this.#isStopped || code !== 1000) this.codes.push(code);
    if (!this.#isStopped && code !== 1001) this.#fail(`a WebSocket was closed with ${code}`);
    if (received === 0 && !this.#isStopped) this.#fail('a WebSocket responded to nothing');
    return performance.now();
  }

  #fail(what: string): void {
    this.failures.push(`${new Date().toISOString()} ${what}`);
  }
}

function collect(clients: readonly SocketClient[]): SocketResult {
  const closed = new Map<number, number>();
  for (const code of clients.flatMap(({ codes }) => codes)) closed.set(code, (closed.get(code) ?? 0) + 1);
  const sum = (of: (one: SocketClient) => number): number => clients.reduce((all, one) => all + of(one), 0);
  return {
    ...{ closed, opened: sum(({ opened }) => opened), messages: sum(({ messages }) => messages) },
    reopenedMs: clients.flatMap(({ reopenedMs }) => reopenedMs),
    failures: clients.flatMap(({ failures }) => failures),
  };
}
