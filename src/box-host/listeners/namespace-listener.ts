// Opens a listener inside the network namespace of a box. A short process enters the namespace, listens, hands its socket
// over and is killed: it must have ended before any process of the box starts, because it too would accept connections.
import { type ChildProcess, spawn } from 'node:child_process';

/** The network namespace of a box: the command that runs a program within it, with what the program has from `firstDescriptor` on. */
export type EnterableNamespace = {
  enter(
    command: readonly string[],
    firstDescriptor: number,
  ): { readonly command: readonly string[]; readonly descriptors: readonly number[] };
};

/** A socket that listens, and for which this process accepts nothing. It is passed on with `subprocess.send`. */
export type NamespaceListener = {
  readonly handle: object;
  /** In this process; those that were passed on stay open. */
  close(): void;
};

/** Throws an Error that says why the namespace cannot be entered, or the port not be used. */
export async function openNamespaceListener(
  namespace: EnterableNamespace,
  { host, port }: { readonly host: string; readonly port: number },
  timeoutMs: number = TIMEOUT_MS,
): Promise<NamespaceListener> {
  const node = [process.execPath, '--eval', HELPER, host, String(port)];
  const { command, descriptors } = namespace.enter(node, FIRST_DESCRIPTOR);
  const [program = '', ...args] = command;
  const helper = spawn(program, args, {
    cwd: '/',
    // Nothing of this process: its environment may hold secrets.
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc', ...descriptors],
  });
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  let complaint = '';
  helper.stderr?.on('data', (text: Buffer) => (complaint = `${complaint}${text.toString()}`.slice(-1000)));
  helper.on('message', (message, handle) => {
    if (typeof handle === 'object' && handle !== null) resolve(handle);
    else reject(new Error(`the listener of the box cannot be opened: ${errorOf(message)}`));
  });
  // Also of the channel: the helper is killed while its message is confirmed.
  helper.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (helper.pid !== undefined) return;
    reject(new Error(`${program} cannot be run (${code}): install the Debian package util-linux`));
    end();
  });
  helper.on('close', () => {
    reject(new Error(`the network namespace of the box cannot be entered: ${lastLine(complaint)}`));
    end();
  });
  const late = setTimeout(() => {
    reject(new Error('the listener of the box cannot be opened: its helper does not respond'));
  }, timeoutMs);
  try {
    const handle = await promise;
    return { handle, close: () => closeHandle(handle) };
  } finally {
    clearTimeout(late);
    await endHelper(helper, ended);
  }
}

/** One that does not end could accept connections in place of the sidecar: then the box does not start. */
async function endHelper(helper: ChildProcess, ended: Promise<void>): Promise<void> {
  helper.kill('SIGKILL');
  const { promise, reject } = Promise.withResolvers<never>();
  const late = setTimeout(() => reject(new Error('the helper of the listener does not end')), KILLED_MS);
  try {
    await Promise.race([ended, promise]);
  } finally {
    clearTimeout(late);
  }
}

const TIMEOUT_MS = 15_000;
const KILLED_MS = 5_000;

/** Behind the three standard streams and the IPC channel. */
const FIRST_DESCRIPTOR = 4;

// The handle of the server and not the server: whoever receives a server accepts connections for it.
const HELPER = `
const [host, port] = process.argv.slice(1);
const server = require('node:net').createServer();
server.on('error', ({ code }) => process.send({ error: code }));
server.listen({ host, port: Number(port), backlog: 1024 }, () => process.send({}, server._handle));
`;

function errorOf(message: unknown): string {
  const code = typeof message === 'object' && message !== null && 'error' in message ? message.error : '';
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? code : 'an unknown error';
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) || 'the helper ended';
}

function closeHandle(handle: object): void {
  if ('close' in handle && typeof handle.close === 'function') handle.close();
}
