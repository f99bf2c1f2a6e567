// A network namespace with nothing but its own loopback, as a box has it. It ends with the test.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import type { EnterableNamespace } from '../../src/box-host/listeners/namespace-listener.ts';
import { type Finished, runToEnd } from './spawned-process.ts';

export type NetworkNamespace = AsyncDisposable &
  EnterableNamespace & {
    /** Runs a program inside. */
    run(command: string, args: readonly string[]): Promise<Finished>;
  };

const isRoot: boolean = process.getuid?.() === 0;

/** The network namespace of a process of ours that has not been waited for, so that its id is still its own. */
export function namespaceOf(pid: number): EnterableNamespace & Disposable {
  const network = openSync(`/proc/${pid}/ns/net`, 'r');
  const user = isRoot ? undefined : openSync(`/proc/${pid}/ns/user`, 'r');
  const descriptors = [network, ...(user === undefined ? [] : [user])];
  return {
    enter(command, first) {
      const asUser =
        user === undefined ? [] : [`--user=/proc/self/fd/${first + 1}`, '--preserve-credentials'];
      return {
        command: ['nsenter', ...asUser, `--net=/proc/self/fd/${first}`, '--', ...command],
        descriptors,
      };
    },
    [Symbol.dispose]() {
      for (const descriptor of descriptors) closeSync(descriptor);
    },
  };
}

/** Throws an Error that says what the machine lacks. */
export async function createNetworkNamespace(): Promise<NetworkNamespace> {
  const shell = ['sh', '-c', 'ip link set lo up && echo ready && exec cat'];
  const holder = spawn('unshare', ['--user', '--map-root-user', '--net', ...shell]);
  const exited = new Promise<void>((resolve) => holder.once('close', () => resolve()));
  let complaint = '';
  holder.stderr.on('data', (text: Buffer) => (complaint += text.toString()));
  holder.on('error', ({ message }) => (complaint += message));
  await Promise.race([once(holder.stdout, 'data').catch(() => undefined), exited]);
  if (holder.pid === undefined || holder.exitCode !== null)
    throw new Error(
      `this machine makes no network namespaces, which the test needs: install util-linux and iproute2, and allow user namespaces (${complaint.trim()})`,
    );
  const namespace = namespaceOf(holder.pid);
  return {
    enter: (command, first) => namespace.enter(command, first),
    run(program, args) {
      const { command, descriptors } = namespace.enter([program, ...args], 3);
      const [entering = '', ...rest] = command;
      return runToEnd(entering, rest, { descriptors });
    },
    async [Symbol.asyncDispose]() {
      namespace[Symbol.dispose]();
      holder.kill('SIGKILL');
      await exited;
    },
  };
}
