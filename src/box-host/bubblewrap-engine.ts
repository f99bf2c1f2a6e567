// Boxes that bubblewrap isolates: each has a network namespace with nothing but the listener of its proxy, and runs the agent of
// the data plane while somebody calls it.
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { Log } from '../base/log.ts';
import { SingleFlight } from '../base/single-flight.ts';
import { toAgentVariables } from '../box-agent/protocol/variables.ts';
import { findAgentProgram } from './agents/agent-program.ts';
import { BoxError } from './box-error.ts';
import type { BoxDocument } from './box-document.ts';
import { programsDirectory } from './bubblewrap/arguments.ts';
import type { Box } from './bubblewrap/box.ts';
import { Boxes, type NewBox } from './bubblewrap/boxes.ts';
import { type Capabilities as Found, defaultMounts } from './bubblewrap/capabilities.ts';
import { HiddenPaths } from './bubblewrap/hidden-paths.ts';
import { boxEnvironment, proxyPort } from './bubblewrap/environment.ts';
import type { BoxEngine, Capabilities, OpenBox, Surroundings } from './engine.ts';
import { openNamespaceListener } from './listeners/namespace-listener.ts';
import { findLibraries } from './program-libraries.ts';

export type BubblewrapOptions = {
  /** Of the box host. */
  readonly directory: string;
  /** What this machine can hold, without obstacles. */
  readonly found: Found;
  readonly log: Log;
  readonly hidden?: HiddenPaths;
};

const BASE = 'base';

export async function createBubblewrapEngine({
  directory,
  found,
  log,
  hidden = new HiddenPaths(),
}: BubblewrapOptions): Promise<BoxEngine> {
  const agent = findAgentProgram();
  const agentName = agent.entry === undefined ? 'agent.js' : 'agent';
  const libraries = await findLibraries(process.execPath);
  const boxes = await Boxes.open({
    directory: join(directory, 'bubblewrap'),
    mounts: defaultMounts(directory),
    storage: found.storage,
    programs: { node: process.execPath, [agentName]: agent.source, ...libraries.files },
    hidden,
  });
  // The first box waits for what is left of the search.
  void hidden
    .current()
    .catch((error: unknown) => log.warn({ reason: String(error) }, '/usr is not searched'));
  const program = [
    ...[join(programsDirectory, libraries.loader), '--library-path', programsDirectory],
    `${programsDirectory}/node`,
    ...agent.nodeArguments,
    join(programsDirectory, agentName, agent.entry ?? ''),
  ];
  const base = new SingleFlight<unknown>();
  const requireBase = (): Promise<unknown> =>
    base.run(BASE, async () => (await boxes.snapshots.find(BASE)) ?? boxes.snapshots.createBase(BASE));
  return {
    kind: 'bubblewrap',
    version: found.bubblewrap,
    snapshots: boxes.snapshots,
    capabilities: async () => toCapabilities(found),
    async open(document, surroundings): Promise<OpenBox> {
      if ((document.snapshot_id ?? BASE) === BASE) await requireBase();
      const prepare = (given: BoxDocument, { caBundle }: Surroundings): Promise<Box> =>
        reporting(log, async () => {
          const box = await boxes.create(toNewBox(given, await caBundle()));
          await box.open();
          return box;
        });
      const box = await prepare(document, surroundings);
      return openBox(box, document, { program, warnings: found.warnings, prepare });
    },
    remove: (id) => boxes.remove(id),
    close: () => boxes[Symbol.asyncDispose](),
  };
}

function toNewBox({ id, snapshot_id: snapshotId = BASE, limits }: BoxDocument, caBundle: string): NewBox {
  return {
    id,
    snapshotId,
    capacityBytes: limits.fs_capacity_bytes,
    limits: { memBytes: limits.mem_bytes, cpuMillicores: limits.cpu_millicores, pids: limits.pids },
    caBundle,
  };
}

type Opening = {
  readonly program: readonly string[];
  readonly warnings: readonly string[];
  /** Applies what a start says; continues with what is there. */
  prepare(given: BoxDocument, surroundings: Surroundings): Promise<unknown>;
};

async function openBox(
  box: Box,
  document: BoxDocument,
  { program, warnings, prepare }: Opening,
): Promise<OpenBox> {
  let own = document.env_vars;
  try {
    const listen = await openNamespaceListener(box.network, { host: '127.0.0.1', port: proxyPort });
    return {
      listen,
      ...(warnings.length > 0 && { statusMessage: warnings.join('; ') }),
      // An idle box has no process that could end: what can is its mounts.
      ended: box.ended,
      openAgent: (placeholders) => startAgent(box, program, boxEnvironment({ placeholders, own })),
      async update(given, surroundings) {
        await prepare(given, surroundings);
        own = given.env_vars;
      },
      async close() {
        listen.close();
        await box.stop();
      },
    };
  } catch (error) {
    await box.stop();
    throw error;
  }
}

/** The agent ends with its channel, and with it everything that runs in the box. */
async function startAgent(
  box: Box,
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Duplex> {
  // The one before may still be ending.
  await box.program?.end();
  const program = await box.start(command, toAgentVariables(environment));
  // What does not end is reported by the next start, and by the end of the box.
  program.channel.once('close', () => void program.end().catch(() => undefined));
  return program.channel;
}

/** What the user asked for and this machine cannot give is said; anything else is logged. */
async function reporting<T>(log: Log, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof BoxError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    log.error({ reason }, 'a box is not created or opened');
    const isInput = error instanceof Error && error.name === 'InputError';
    throw new BoxError(
      'failed',
      isInput ? reason : 'The files of the box cannot be prepared: see the log of the box host',
    );
  }
}

function toCapabilities({ storage, limits, warnings }: Found): Capabilities {
  const [missing] = limits.missing;
  const held = { is_held: true } as const;
  return {
    isolation: held,
    limits: missing === undefined ? held : { is_held: false, reason: `${missing.limit}: ${missing.reason}` },
    // In memory the size is limited too, and its files are gone when it stops.
    storage: held,
    agent: held,
    ...(storage === 'tmpfs' &&
      warnings.length > 0 && { storage: { is_held: true, reason: warnings.join('; ') } }),
  };
}
