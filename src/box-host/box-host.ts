// The composition root of the box host: one directory in, a running API out. It is the parent of everything that runs for boxes
// on this machine, and outlives the platform, which connects to it again.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import type { Log } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import type { Duplex } from 'node:stream';
import { AgentError } from './agents/agent-error.ts';
import { BoxAgents } from './agents/box-agents.ts';
import { createBoxApi } from './api/box-api.ts';
import { type PortRange, createAttachedEngine } from './attached-engine.ts';
import { BoxError } from './box-error.ts';
import { BoxStore } from './box-store.ts';
import { Boxes } from './boxes.ts';
import { Changes } from './changes.ts';
import { DataPlane } from './data-plane/data-plane.ts';
import { lockDirectory } from './directory-lock.ts';
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
  /** What isolates boxes; by default nothing does. */
  readonly createEngine?: () => Promise<BoxEngine | undefined>;
  /** How long it runs without a platform. */
  readonly idleMs?: number;
};

export type BoxHost = {
  readonly socketPath: string;
  readonly boxes: Boxes;
  /** Process ids, for tests that end them. */
  readonly sidecars: Sidecars;
  /** Resolves when no platform has been connected for `idleMs`. */
  readonly abandoned: Promise<void>;
  /** Ends all boxes and everything that runs for them. */
  close(): Promise<void>;
};

const IDLE_MS = 60_000;
const DRAIN_MS = 2_000;
/** The kernel limits the path of a socket, also of the sidecars', which have names of 14 characters. */
const MAX_DIRECTORY_BYTES = 88;

/** Throws an InputError that says what to do if the directory cannot be used. */
export async function createBoxHost(options: BoxHostOptions): Promise<BoxHost> {
  const { directory, program, attachedListen, log, idleMs = IDLE_MS } = options;
  await prepareDirectory(directory);
  const lock = await lockDirectory(directory);
  const idle = watchIdle(idleMs);
  const changes = new Changes((readers) => idle.setReaders(readers));
  const notify = (): void => changes.notify();
  const records = new RecordBook();
  await removeSockets(directory);
  const store = await BoxStore.open(directory);
  const sidecars = new Sidecars({ directory, program, records, log, onLost: notify });
  const engine =
    (await options.createEngine?.()) ?? createAttachedEngine(attachedListen, () => store.ports());
  const boxes: Boxes = new Boxes({
    ...{ engine, sidecars, store, log },
    onChange: notify,
    onEnd: (id) => agents.stop(id),
  });
  const agents: BoxAgents = new BoxAgents({ log, open: (id) => openAgent(boxes, id) });
  const plane = new DataPlane(agents, log);
  const token = randomBytes(32).toString('base64url');
  const api = createBoxApi({ boxes, engine, changes, records }, { token: new Secret(token), log, plane });
  const socketPath = join(directory, 'api.sock');
  await writeFile(join(directory, 'token'), token, { mode: 0o600 });
  // Nobody but this user can enter the directory.
  api.listener.listen(socketPath);
  await once(api.listener, 'listening');
  return {
    socketPath,
    boxes,
    sidecars,
    abandoned: idle.expired,
    async close() {
      idle.stop();
      await Promise.all([plane.close(DRAIN_MS), api.close(DRAIN_MS, 'end')]);
      await agents.close();
      await boxes.close();
      await engine.close();
      await sidecars.close();
      lock[Symbol.dispose]();
    },
  };
}

/** A box that was stopped meanwhile is no error of this process. */
async function openAgent(boxes: Boxes, id: string): Promise<Duplex> {
  try {
    return await boxes.openAgent(id);
  } catch (error) {
    throw error instanceof BoxError ? new AgentError('stopped') : error;
  }
}

async function prepareDirectory(directory: string): Promise<void> {
  if (Buffer.byteLength(directory) > MAX_DIRECTORY_BYTES)
    throw new InputError(
      `${directory}: the path is over ${MAX_DIRECTORY_BYTES} bytes long, and sockets must be in it: use a shorter data_dir`,
    );
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const found = await lstat(directory);
  const isOurs = found.uid === (process.getuid?.() ?? found.uid);
  if (!found.isDirectory() || !isOurs || (found.mode & 0o077) !== 0)
    throw new InputError(
      `${directory} must be a directory of this user with mode 0700: correct it, or use another one`,
    );
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
