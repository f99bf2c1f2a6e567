// Listeners in the network namespaces of sandboxes. The parent process opens them there and hands them over as open
// descriptors (Node's IPC channel), each for one sandbox and for one use. A name in a document (a path, a process id, a
// descriptor number) could mean another namespace by the time it is opened; an open descriptor cannot.
import { fstatSync, readFileSync } from 'node:fs';
import { type Refused, refused } from '../../admin/target.ts';
import { formatAddress } from '../../base/listen-address.ts';
import { isObject } from '../../base/json/json-document.ts';
import { z } from '../../base/schema.ts';
import { isLoopbackListen } from '../listen-address.ts';

/** The handle of a TCP socket, as Node passes it over an IPC channel: not yet a server, so that nothing accepts for it. */
type TcpHandle = {
  readonly fd: number;
  getsockname(out: SocketName): number;
  close(): void;
};
type SocketName = { address?: string; port?: number };

/** A listener that a sandbox takes; it stays that of the sandbox until `release`. */
export type HandedOverListener = {
  readonly handle: object;
  readonly host: string;
  readonly port: number;
  /**
   * Throws a ListenerRejection if the socket belongs to the network namespace of this process. To be called in the turn
   * in which the socket begins to listen: before that the kernel does not list it, after that it may have clients.
   */
  vet(): void;
  release(): void;
};

export class ListenerRejection extends Error {
  override readonly name = 'ListenerRejection';
}

const announcement = z.strictObject({
  type: z.literal('listener'),
  /** Random, so that it identifies one hand-over. */
  reference: z.string().regex(/^[A-Za-z0-9_-]{16,64}$/),
  sandbox: z.string(),
});

type Waiting = { readonly sandbox: string; readonly handle: TcpHandle | undefined };

/** The parent hands one over and uses it at once. */
const MAX_WAITING = 64;

export class HandedOverListeners {
  readonly #waiting = new Map<string, Waiting>();
  /** The inodes of the sockets that sandboxes use. */
  readonly #used = new Set<number>();

  /** What arrives on the IPC channel. Anything but a listener with its reference is closed. */
  receive(message: unknown, handle: unknown): void {
    const parsed = announcement.safeParse(message);
    if (!parsed.success || this.#waiting.has(parsed.data.reference)) return closeHandle(handle);
    const { reference, sandbox } = parsed.data;
    if (!isTcpHandle(handle)) closeHandle(handle);
    this.#waiting.set(reference, { sandbox, handle: isTcpHandle(handle) ? handle : undefined });
    for (const [oldest, { handle: surplus }] of this.#waiting) {
      if (this.#waiting.size <= MAX_WAITING) return;
      this.#waiting.delete(oldest);
      surplus?.close();
    }
  }

  /** The address of a waiting listener, as a document names it. Changes nothing. */
  addressOf(reference: string, sandbox: unknown): string | Refused {
    const found = this.#waiting.get(reference);
    if (found === undefined || found.sandbox !== sandbox) return UNKNOWN;
    const at = found.handle && nameOf(found.handle);
    return at === undefined ? NO_LISTENER : formatAddress(at);
  }

  /** Throws a ListenerRejection if another sandbox uses the same socket. A reference can be taken once. */
  take(reference: string): HandedOverListener {
    const handle = this.#waiting.get(reference)?.handle;
    this.#waiting.delete(reference);
    const at = handle && nameOf(handle);
    if (handle === undefined || at === undefined) throw new ListenerRejection('it is gone');
    const inode = fstatSync(handle.fd).ino;
    if (this.#used.has(inode)) {
      handle.close();
      throw new ListenerRejection('another sandbox uses it: open one for each sandbox');
    }
    this.#used.add(inode);
    return {
      handle,
      ...at,
      vet() {
        if (isInOwnNamespace(inode)) throw new ListenerRejection(OWN_NAMESPACE);
      },
      release: () => void this.#used.delete(inode),
    };
  }

  close(): void {
    for (const { handle } of this.#waiting.values()) handle?.close();
    this.#waiting.clear();
  }
}

/** A document whose `listen` is the address of a listener that was handed over, and the reference of that listener. */
export type PlacedDocument = { readonly document: unknown; readonly reference: string | undefined };

/** Resolves `"listen": {"handed_over": REFERENCE}`. A document that names no such listener is returned unchanged. */
export function placeDocument(
  document: unknown,
  listeners: HandedOverListeners | undefined,
): PlacedDocument | Refused {
  if (!isObject(document) || !isObject(document['listen'])) return { document, reference: undefined };
  if (listeners === undefined) return NAMESPACES_OFF;
  const { handed_over: reference, ...rest } = document['listen'];
  if (typeof reference !== 'string' || Object.keys(rest).length > 0) return NAMED;
  const address = listeners.addressOf(reference, document['id']);
  if (typeof address !== 'string') return address;
  return { document: { ...document, listen: address }, reference };
}

const NAMESPACES_OFF: Refused = refused({
  kind: 'namespaces_off',
  message:
    'This sidecar takes no listeners of its parent process: set sandboxes.namespaces and a unix socket as admin.listen',
});
const NAMED: Refused = refused({
  kind: 'not_handed_over',
  message:
    'A listener in another namespace is never named by a path, a process or a descriptor: send {"handed_over": reference} of one that the parent process handed over',
});
const UNKNOWN: Refused = refused({
  kind: 'not_handed_over',
  message: 'No unused listener was handed over under this reference for this sandbox: hand over another one',
});
const NO_LISTENER: Refused = refused({
  kind: 'listener_rejected',
  message: 'What was handed over is no TCP socket on a port of loopback: open a listener on 127.0.0.1',
});
const OWN_NAMESPACE = 'it is in the network namespace of this process: open it in that of the sandbox';

function isTcpHandle(handle: unknown): handle is TcpHandle {
  return (
    typeof handle === 'object' &&
    handle !== null &&
    'getsockname' in handle &&
    typeof handle.getsockname === 'function' &&
    'listen' in handle &&
    'fd' in handle &&
    typeof handle.fd === 'number'
  );
}

/** Whatever Node made of a descriptor: it must not stay open. */
function closeHandle(handle: unknown): void {
  if (typeof handle !== 'object' || handle === null) return;
  if ('destroy' in handle && typeof handle.destroy === 'function') handle.destroy();
  else if ('close' in handle && typeof handle.close === 'function') handle.close();
}

/** Undefined: the socket has no port of loopback. */
function nameOf(handle: TcpHandle): { readonly host: string; readonly port: number } | undefined {
  const name: SocketName = {};
  const isNamed = handle.getsockname(name) === 0;
  const { address: host = '', port = 0 } = name;
  return isNamed && port > 0 && isLoopbackListen({ host }) ? { host, port } : undefined;
}

/** True also if the kernel's tables cannot be read: then nothing proves that the socket is elsewhere. */
function isInOwnNamespace(inode: number): boolean {
  try {
    return ['/proc/self/net/tcp', '/proc/self/net/tcp6'].some((file) =>
      readFileSync(file, 'latin1')
        .split('\n')
        .some((line) => line.trim().split(/\s+/)[INODE] === String(inode)),
    );
  } catch {
    return true;
  }
}

/** The column of the inode (proc_pid_net(5)). */
const INODE = 9;
