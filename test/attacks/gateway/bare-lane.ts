// Bare http-proxy-3 as a target of the framing rows: its own origins, and a child process that is restarted after a row has
// crashed it.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { publicAuthority } from '../../invariants/credential-scene.ts';
import { cleanEnvironment } from '../../support/spawned-process.ts';
import { WireClient } from '../../support/wire-client.ts';
import type { MessageTarget } from '../message/message-driver.ts';
import { createMessageOrigins } from '../message/message-origins.ts';
import type { BareCommand, BareReply } from './bare-proxy.ts';
import { valuesOf } from './gateway-scene.ts';

export type BareLane = AsyncDisposable & {
  readonly target: MessageTarget;
  /** Waits until nothing of the row is in progress; returns true if the process has crashed. */
  settle(): Promise<boolean>;
};

/** Bare http-proxy-3 does not signal what it omits: a row waits this long for a response or a close. */
const PATIENCE_MS = 1_000;

export async function createBareLane(): Promise<BareLane> {
  const origins = await createMessageOrigins(publicAuthority);
  const { port } = origins.own.plain;
  let running = await startBare(port);
  return {
    target: {
      open: () => WireClient.connect(running.port),
      origins: origins.all,
      values: () => valuesOf(port),
      patienceMs: PATIENCE_MS,
      ends: false,
    },
    async settle() {
      const reply = await ask(running, { settle: true });
      while (origins.all.some(({ openConnections }) => openConnections > 0))
        await new Promise((resolve) => setImmediate(resolve));
      if (reply) return false;
      running = await startBare(port);
      return true;
    },
    async [Symbol.asyncDispose]() {
      running.child.kill('SIGKILL');
      await origins[Symbol.asyncDispose]();
    },
  };
}

type Running = { readonly child: ChildProcess; readonly dead: Promise<undefined> };

async function startBare(targetPort: number): Promise<Running & { readonly port: number }> {
  const child = fork(join(import.meta.dirname, 'bare-proxy.ts'), {
    env: cleanEnvironment(),
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [],
  });
  const dead = once(child, 'exit').then(() => undefined);
  const ready = await ask({ child, dead }, { target: `http://127.0.0.1:${targetPort}` });
  if (ready?.port === undefined) throw new Error('bare http-proxy-3 did not start');
  return { child, dead, port: ready.port };
}

/** Undefined if the process has died. */
async function ask({ child, dead }: Running, command: BareCommand): Promise<BareReply | undefined> {
  if (child.exitCode !== null || child.signalCode !== null || !child.connected) return undefined;
  const replied = once(child, 'message').then(([message]) => message as BareReply);
  child.send(command, () => undefined);
  return Promise.race([replied, dead]);
}
