// The composition root of the box host: one directory in, a running API out. It is the parent of everything that runs for boxes
// on this machine, and outlives the platform, which connects to it again.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import type { Duplex } from 'node:stream';
import { AgentError } from './agents/agent-error.ts';
import { BoxAgents } from './agents/box-agents.ts';
import { createBoxApi } from './api/box-api.ts';
import { BoxPorts } from './api/box-ports.ts';
import { type PortRange, createAttachedEngine } from './attached-engine.ts';
import { BoxError } from './box-error.ts';
import { BoxAuthorities } from './box-authorities.ts';
import { BoxStore } from './box-store.ts';
import { Boxes } from './boxes.ts';
import { Changes } from './changes.ts';
import { DataPlane } from './data-plane/data-plane.ts';
import { lockDirectory, prepareDirectory } from './directory-lock.ts';
import type { BoxEngine } from './engine.ts';
import { RecordBook } from './sidecars/record-book.ts';
import type { SidecarProgram } from './sidecars/sidecar-process.ts';
import { Sidecars } from './sidecars/sidecars.ts';

export type BoxHostOptions = {
  readonly directory: string;
  readonly program: SidecarProgram;
  /** Of the listeners of attached boxes. */
  readonly attachedListen: PortRange;
  readonly log: Log;
  /** By which the engine is chosen, as platforms ask for it. */
  readonly configured?: string;
  /** What isolates boxes; by default nothing does. */
  readonly createEngine?: (given: GivenEngine) => Promise<BoxEngine>;
  /** How long it runs without a platform. */
  readonly idleMs?: number;
};

export type GivenEngine = {
  /** Boxes of an earlier start. */
  readonly hasBoxes: boolean;
  createAttached(): BoxEngine;
};

export type BoxHost = {
  readonly socketPath: string;
  readonly boxes: Boxes;
  /** Process ids, for tests that end them. */
  readonly sidecars: Sidecars;
  /** Resolves when no platform has been connected for `idleMs`, or when one has asked for the end. */
  readonly abandoned: Promise<void>;
  /** Ends all boxes and everything that runs for them. */
  close(): Promise<void>;
};

const IDLE_MS = 60_000;
const DRAIN_MS = 2_000;
/** Of each part of it: boxes end within seconds, and a sidecar that does not is killed after five. */
const CLOSE_MS = 10_000;

/** Throws an InputError that says what to do if the directory cannot be used. */
export async function createBoxHost(options: BoxHostOptions): Promise<BoxHost> {
  const { directory } = options;
  await prepareDirectory(directory);
  const lock = await lockDirectory(directory);
  try {
    return await openBoxHost(options, lock);
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

async function openBoxHost(options: BoxHostOptions, lock: Disposable): Promise<BoxHost> {
  const { directory, program, attachedListen, log, configured = 'attached', idleMs = IDLE_MS } = options;
  const idle = watchIdle(idleMs);
  const changes = new Changes((readers) => idle.setReaders(readers));
  const notify = (): void => changes.notify();
  const records = new RecordBook();
  await removeSockets(directory);
  const store = await BoxStore.open(directory);
  const authorities = await BoxAuthorities.open(directory, store.ids());
  const sidecars = new Sidecars({ directory, program, records, log, onLost: notify });
  const createAttached = (): BoxEngine => createAttachedEngine(attachedListen, () => store.ports());
  const hasBoxes = store.ids().length > 0;
  const engine = (await options.createEngine?.({ hasBoxes, createAttached })) ?? createAttached();
  const ending = Promise.withResolvers<void>();
  const boxes: Boxes = new Boxes({
    ...{ engine, sidecars, store, authorities, log },
    onChange: notify,
    onEnd: (id) => agents.stop(id),
  });
  const agents: BoxAgents = new BoxAgents({ log, open: (id) => openAgent(boxes, id) });
  const plane = new DataPlane(agents, log);
  const token = randomBytes(32).toString('base64url');
  const ports = new BoxPorts(agents);
  const access = { token: new Secret(token), log, plane, ports };
  const target = { boxes, engine, changes, records, configured, log, end: () => ending.resolve() };
  const api = createBoxApi(target, access);
  const socketPath = join(directory, 'api.sock');
  await writeFile(join(directory, 'token'), token, { mode: 0o600 });
  // Nobody but this user can enter the directory.
  api.listener.listen(socketPath);
  await once(api.listener, 'listening');
  return {
    socketPath,
    boxes,
    sidecars,
    abandoned: Promise.race([idle.expired, ending.promise]),
    async close() {
      idle.stop();
      await closeInOrder(log, [
        ['its API', () => Promise.all([plane.close(DRAIN_MS), api.close(DRAIN_MS, 'end')])],
        ['agents', () => agents.close()],
        ['boxes', () => boxes.close()],
        ['what isolates boxes', () => engine.close()],
        ['sidecars', () => sidecars.close()],
      ]);
      lock[Symbol.dispose]();
    },
  };
}

/** One part that fails or hangs leaves no other one open. */
async function closeInOrder(
  log: Log,
  parts: readonly (readonly [name: string, close: () => Promise<unknown>])[],
): Promise<void> {
  for (const [name, close] of parts) {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new Error(`it takes more than ${CLOSE_MS / 1_000} s`)),
      CLOSE_MS,
    );
    try {
      await Promise.race([close(), late.promise]);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.error({ part: name, reason }, 'a part of the box host is not closed');
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A box that was stopped meanwhile is no error of this process. */
async function openAgent(boxes: Boxes, id: string): Promise<Duplex> {
  try {
    return await boxes.openAgent(id);
  } catch (error) {
    throw error instanceof BoxError ? new AgentError('stopped') : error;
  }
}

/** What a box host that was killed left behind: nothing listens there, because its lock is free. */
async function removeSockets(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter(
    (name) => name === 'api.sock' || /^s-[0-9a-f]{12}$/.test(name),
  );
  for (const name of names) await rm(join(directory, name), { force: true });
}

/** A platform is connected as long as it reads the changes. */
function watchIdle(idleMs: number) {
  const { promise: expired, resolve } = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined = setTimeout(resolve, idleMs).unref();
  return {
    expired,
    setReaders(count: number): void {
      clearTimeout(timer);
      timer = count === 0 ? setTimeout(resolve, idleMs).unref() : undefined;
    },
    stop: (): void => clearTimeout(timer),
  };
}
