// The mount namespace of the box host: whatever is mounted for boxes exists there alone, and ends with the box host. Without
// root it belongs to a user namespace, in which this user may mount.
import { runCommand, requireCommand, type CommandResult } from '../../command.ts';
import { enterNamespaces } from './entering.ts';
import { closeNamespaces, openNamespaces, type OpenNamespaces, SET_UP_SCRIPT_END } from './open-namespace.ts';

export type Privilege = 'root' | 'user';

export function privilegeOfProcess(): Privilege {
  return process.getuid?.() === 0 ? 'root' : 'user';
}

/** Of a script: one that hangs costs its box the operation, and no other box anything. */
const TIMEOUT_MS = 20_000;

export class MountNamespace implements Disposable {
  readonly privilege: Privilege;
  readonly namespaces: OpenNamespaces;
  #isClosed = false;

  private constructor(privilege: Privilege, namespaces: OpenNamespaces) {
    this.privilege = privilege;
    this.namespaces = namespaces;
  }

  static async open(privilege: Privilege = privilegeOfProcess()): Promise<MountNamespace> {
    const user = privilege === 'root' ? [] : ['--user', '--map-root-user'];
    const namespaces = await openNamespaces(
      ['unshare', ...user, '--mount', '--propagation', 'private', '/bin/sh', '-c', SET_UP_SCRIPT_END],
      privilege === 'root' ? ['mnt'] : ['user', 'mnt'],
    );
    return new MountNamespace(privilege, namespaces);
  }

  /** Runs a shell script there; the arguments are its positional parameters. */
  run(script: string, args: readonly string[] = []): Promise<CommandResult> {
    const { command, descriptors } = this.#entry(script, args);
    return runCommand(command, descriptors, TIMEOUT_MS);
  }

  /** As `run`, and throws an Error that says what failed and why. */
  require(what: string, script: string, args: readonly string[] = []): Promise<string> {
    const { command, descriptors } = this.#entry(script, args);
    return requireCommand(what, command, descriptors, TIMEOUT_MS);
  }

  #entry(script: string, args: readonly string[]) {
    return enterNamespaces(this.namespaces, ['/bin/sh', '-e', '-c', script, 'sh', ...args]);
  }

  /** A number that was closed may belong to another file by now: never twice. */
  [Symbol.dispose](): void {
    if (!this.#isClosed) closeNamespaces(this.namespaces);
    this.#isClosed = true;
  }
}
