// Boxes that bubblewrap isolates: each has a network namespace with nothing but the listener of its proxy, and runs the agent of
// the data plane while somebody calls it.
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { Log } from '../base/log.ts';
import { SingleFlight } from '../base/single-flight.ts';
import { findAgentProgram } from './agents/agent-program.ts';
import { BoxError } from './box-error.ts';
import type { BoxDocument } from './box-document.ts';
import { programsDirectory } from './bubblewrap/arguments.ts';
import type { Box } from './bubblewrap/box.ts';
import { Boxes } from './bubblewrap/boxes.ts';
import { type Capabilities as Found, defaultMounts } from './bubblewrap/capabilities.ts';
import { boxEnvironment, proxyPort } from './bubblewrap/environment.ts';
import type { BoxEngine, Capabilities, OpenBox } from './engine.ts';
import { openNamespaceListener } from './listeners/namespace-listener.ts';

export type BubblewrapOptions = {
  /** Of the box host. */
  readonly directory: string;
  /** What this machine can hold, without obstacles. */
  readonly found: Found;
  readonly log: Log;
};

const BASE = 'base';
const MEBIBYTE = 1024 * 1024;
/** Of a box that asks for none: in a file that grows, or in memory. */
const CAPACITY = { loop: 2048 * MEBIBYTE, tmpfs: 256 * MEBIBYTE } as const;

export async function createBubblewrapEngine({
  directory,
  found,
  log,
}: BubblewrapOptions): Promise<BoxEngine> {
  const agent = findAgentProgram();
  const agentName = agent.entry === undefined ? 'agent.js' : 'agent';
  const boxes = await Boxes.open({
    directory: join(directory, 'bubblewrap'),
    mounts: defaultMounts(directory),
    storage: found.storage,
    programs: { node: process.execPath, [agentName]: agent.source },
  });
  const program = [
    `${programsDirectory}/node`,
    ...agent.nodeArguments,
    join(programsDirectory, agentName, agent.entry ?? ''),
  ];
  const base = new SingleFlight<unknown>();
  const requireBase = (): Promise<unknown> =>
    base.run(BASE, async () => (await boxes.snapshots.find(BASE)) ?? boxes.snapshots.createBase(BASE));
  return {
    kind: 'bubblewrap',
    capabilities: async () => toCapabilities(found),
    async open(document, { caBundle }): Promise<OpenBox> {
      const { id, snapshot_id: snapshotId = BASE, limits } = document;
      if (snapshotId === BASE) await requireBase();
      const box = await creating(
        boxes.create({
          id,
          snapshotId,
          capacityBytes: limits.fs_capacity_bytes ?? CAPACITY[found.storage],
          limits: { memBytes: limits.mem_bytes, cpuMillicores: limits.cpu_millicores, pids: limits.pids },
          caBundle: await caBundle(),
        }),
        log,
      );
      return openBox(box, document, { program, warnings: found.warnings });
    },
    remove: (id) => boxes.remove(id),
    close: () => boxes[Symbol.asyncDispose](),
  };
}

async function openBox(
  box: Box,
  document: BoxDocument,
  { program, warnings }: { readonly program: readonly string[]; readonly warnings: readonly string[] },
): Promise<OpenBox> {
  await box.open();
  try {
    const listen = await openNamespaceListener(box.network, { host: '127.0.0.1', port: proxyPort });
    return {
      listen,
      ...(warnings.length > 0 && { statusMessage: warnings.join('; ') }),
      // An idle box has no process that could end.
      ended: new Promise<string>(() => undefined),
      openAgent: (placeholders) =>
        startAgent(box, program, boxEnvironment({ placeholders, own: document.env_vars })),
      async close() {
        await box.stop();
        listen.close();
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
  const program = await box.start(command, environment);
  program.channel.once('close', () => void program.end());
  return program.channel;
}

/** What the user asked for and this machine cannot give; anything else is logged. */
async function creating(created: Promise<Box>, log: Log): Promise<Box> {
  try {
    return await created;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    log.error({ reason }, 'a box is not created');
    const isInput = error instanceof Error && error.name === 'InputError';
    throw new BoxError(
      'failed',
      isInput ? reason : 'The files of the box cannot be created: see the log of the box host',
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
