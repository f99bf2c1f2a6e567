// One agent server in a workload, from its directories until nothing of it is left. It runs code of a deployment: what it puts into its
// directory, says or responds is not believed.
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Secret } from '../../../base/secret.ts';
import { createOwnedDirectory } from '../../../workload/owned-directory.ts';
import { removeTree } from '../../../workload/tree-removal.ts';
import {
  describeEnd,
  type Workload,
  type WorkloadLimits,
  type WorkloadMount,
  type WorkloadNetwork,
  type WorkloadService,
  type Workloads,
  type WorkloadUser,
} from '../../../workload/workload.ts';
import { INPUT_VARIABLE } from '../../agent-server/contract.ts';
import type { CreateInstanceControl, InstanceControl } from '../../deployment-gateway/instance-control.ts';
import type { ServedInstance } from '../../deployment-gateway/target-table.ts';
import { type AgentIdentity, type AgentSecrets, formatAgentInput } from './agent-input.ts';
import { type AgentLevel, parseAgentLine } from './agent-lines.ts';
import { pinSocket } from './pinned-socket.ts';

/** What is the same for all agent servers of a runner. */
export type AgentGround = {
  readonly workloads: Workloads;
  /** Node and the launcher of this program, and the files that both need. */
  readonly program: { readonly command: readonly string[]; readonly files: readonly string[] };
  /** Each of them gets a directory in it. On the same file system as itself, and nothing above it is writable for a workload. */
  readonly directory: string;
  readonly createControl: CreateInstanceControl;
  readonly readyMs?: number;
};

export type AgentSpec = {
  readonly build: { readonly directory: string; readonly configPath: string };
  readonly identity: AgentIdentity;
  readonly secrets: Omit<AgentSecrets, 'gatewayToken'>;
  /** Of all agent servers of a revision. */
  readonly gatewayToken: string;
  readonly user: WorkloadUser | undefined;
  readonly limits: WorkloadLimits;
  readonly network: WorkloadNetwork;
  readonly maxConnections: number;
  /** Where it sends its runs; undefined: nowhere. */
  readonly traces: WorkloadService | undefined;
  /** `instance` identifies this process in the log. */
  onLine(line: AgentLogLine): void;
};

export type AgentLogLine = {
  readonly instance: string;
  readonly level: AgentLevel;
  readonly message: string;
  readonly isCut: boolean;
};

/** The rules of its proxy, with the values of their secrets. */
export type WorkloadPolicy = Parameters<Workload['applyPolicy']>[0];

/** One that is ready. */
export type AgentProcess = {
  readonly served: ServedInstance;
  readonly control: InstanceControl;
  readonly workload: Pick<Workload, 'pid' | 'applyPolicy' | 'memoryBytes'>;
  /** Resolves with the reason when nothing of it runs any more. */
  readonly ended: Promise<string>;
  stop(graceMs: number): Promise<void>;
};

/** The message is for the owner of the deployment. */
export class StartFailure extends Error {
  override readonly name: string = 'StartFailure';
}

const READY_MS = 60_000;
const PROBE_MS = 100;
/** Of one that did not become ready. */
const GRACE_MS = 2_000;
/** For what could not be removed when it had ended. */
const LEFT_MS = 600_000;
const DATABASE_PIDS = 512;
const OPEN_FILES = 4_096;

/** Resolves when it is ready. Rejects with a StartFailure, or with the reason of the signal, and nothing of it is left then. */
export async function startAgentProcess(
  ground: AgentGround,
  spec: AgentSpec,
  signal: AbortSignal,
): Promise<AgentProcess> {
  signal.throwIfAborted();
  const id = randomBytes(8).toString('hex');
  const { gatewayToken } = spec;
  const directory = join(ground.directory, id);
  const state = join(directory, 'state');
  const socketPath = join(directory, 'pinned', 'api.sock');
  const workload = await create(ground, spec, { id, state, socketPath }).catch(async (cause: unknown) => {
    await removeTree(directory);
    throw new StartFailure(cause instanceof Error ? cause.message : 'it could not be started', { cause });
  });
  const ended = workload.ended.then(async (end) => {
    // Of very many files, the next one does not wait for all.
    if (!(await removeTree(directory))) void removeTree(directory, { patienceMs: LEFT_MS });
    return describeEnd(end, spec.limits);
  });
  const served: ServedInstance = { id, socketPath, gatewayToken };
  const control = ground.createControl(served);
  const process: AgentProcess = {
    ...{ served, control, workload, ended },
    async stop(graceMs) {
      await workload.stop(graceMs);
      await ended;
    },
  };
  for (const message of workload.held.notes)
    spec.onLine({ instance: id, level: 'INFO', message, isCut: false });
  try {
    await whenReady(process, join(state, 'api.sock'), ground.readyMs ?? READY_MS, signal);
    return process;
  } catch (error) {
    await process.stop(GRACE_MS);
    throw error;
  }
}

type Places = { readonly id: string; readonly state: string; readonly socketPath: string };

/** Whatever fails, its directory is to be removed: a disk that is full takes the first of them, and not the next. */
async function create(ground: AgentGround, spec: AgentSpec, places: Places): Promise<Workload> {
  const pinned = dirname(places.socketPath);
  await mkdir(dirname(pinned), { mode: 0o711 });
  await mkdir(pinned, { mode: 0o700 });
  await createOwnedDirectory(places.state, spec.user);
  return start(ground, spec, places);
}

function start(
  ground: AgentGround,
  spec: AgentSpec,
  { id, state }: Pick<Places, 'id' | 'state'>,
): Promise<Workload> {
  const { build, secrets, gatewayToken, limits, network, user } = spec;
  const config = join(build.directory, build.configPath);
  return ground.workloads.start({
    ...{ id, network: withTraces(network, spec.traces), user },
    command: [
      ...[...ground.program.command, 'agent-server', '--config', config],
      ...['--listen', `unix:${join(state, 'api.sock')}`, '--data-dir', join(state, 'data')],
    ],
    cwd: dirname(config),
    env: {
      HOME: state,
      [INPUT_VARIABLE]: '3',
      SALLYPORT_PLATFORM_DATABASE_MAX_CONNECTIONS: String(spec.maxConnections),
      SALLYPORT_AGENT_WORKERS: String(workersOf(limits)),
    },
    input: formatAgentInput({ ...secrets, gatewayToken: new Secret(gatewayToken) }, identityOf(spec)),
    mounts: mountsOf(ground, spec, state),
    limits: { pids: DATABASE_PIDS, openFiles: OPEN_FILES, ...limits },
    onLine: (stream, line, isCut) => spec.onLine({ instance: id, isCut, ...parseAgentLine(stream, line) }),
  });
}

function withTraces(network: WorkloadNetwork, traces: WorkloadService | undefined): WorkloadNetwork {
  return traces === undefined || network === 'none' ? network : { ...network, services: [traces] };
}

function identityOf({ identity, traces }: AgentSpec): AgentIdentity {
  return traces === undefined ? identity : { ...identity, tracesUrl: `http://127.0.0.1:${traces.port}` };
}

/** At the same places as on the machine: without namespaces there are no others. */
function mountsOf(
  ground: AgentGround,
  { build, secrets }: AgentSpec,
  state: string,
): readonly WorkloadMount[] {
  const read = [...ground.program.files, build.directory, secrets.database.directory];
  return [
    ...read.map((source) => ({ source, target: source })),
    { source: state, target: state, writable: true },
  ];
}

/** Two at least: one that does not end holds up no other run. */
function workersOf({ cpuMillicores = 0 }: WorkloadLimits): number {
  return Math.max(2, Math.ceil(cpuMillicores / 1000));
}

async function whenReady(
  { control, served, ended }: AgentProcess,
  socket: string,
  readyMs: number,
  signal: AbortSignal,
): Promise<void> {
  const late = AbortSignal.timeout(readyMs);
  const gone = new AbortController();
  void ended.then((reason) => gone.abort(new StartFailure(`the agent server did not start: ${reason}`)));
  const until = AbortSignal.any([signal, late, gone.signal]);
  try {
    await pinSocket(socket, served.socketPath, until);
    while (!(await control.isReady().catch(() => false))) await delay(PROBE_MS, undefined, { signal: until });
  } catch (error) {
    signal.throwIfAborted();
    gone.signal.throwIfAborted();
    if (!late.aborted) throw error;
    throw new StartFailure(`the agent server was not ready after ${Math.round(readyMs / 1000)} seconds`);
  }
  gone.signal.throwIfAborted();
}
