// The network namespace of one box: loopback and nothing else. The listener of the proxy is opened within it from outside,
// and the programs of the box are started within it.
import { type Entry, enterNamespaces } from './entering.ts';
import type { MountNamespace } from './mount-namespace.ts';
import { closeNamespaces, openNamespaces, type OpenNamespaces, SET_UP_SCRIPT_END } from './open-namespace.ts';

export class NetworkNamespace implements Disposable {
  /** With the user namespace that it belongs to, if there is one. */
  readonly namespaces: OpenNamespaces;
  readonly #net: OpenNamespaces;
  #isClosed = false;

  private constructor(net: OpenNamespaces, user: OpenNamespaces) {
    this.#net = net;
    this.namespaces = { ...user, ...net };
  }

  static async open({ namespaces: { user } }: MountNamespace): Promise<NetworkNamespace> {
    const owner = user === undefined ? {} : { user };
    const script = `ip link set lo up && ${SET_UP_SCRIPT_END}`;
    const { command, descriptors } = enterNamespaces(owner, ['unshare', '--net', '/bin/sh', '-c', script]);
    return new NetworkNamespace(await openNamespaces(command, ['net'], descriptors), owner);
  }

  /** The command and the descriptors with which a child runs within this namespace, and not within the mounts of a box. */
  enter(command: readonly string[], firstDescriptor = 3): Entry {
    return enterNamespaces(this.namespaces, command, { firstDescriptor });
  }

  /** Its connections and listeners end when nothing else holds it. */
  [Symbol.dispose](): void {
    if (!this.#isClosed) closeNamespaces(this.#net);
    this.#isClosed = true;
  }
}
