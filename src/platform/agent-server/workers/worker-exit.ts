// Why a worker has ended, in words that follow `its worker`: for the log, and for the error of a run that was lost too often. Pure.

export type WorkerExit = {
  /** Of its process: `SIGKILL`, `exit code 1`, or the code of an error. */
  readonly how: string;
  /** V8 has said so before it ended the process. */
  readonly isOutOfHeap: boolean;
  /** What the worker may have. */
  readonly heapMegabytes: number;
};

/**
 * For figures. `closed`: by this server, which needs it no more. `load_failed` and `not_ready`: it did not come so far as to serve.
 * `blocked`: it did not respond. `worn`: calls that were cancelled did not end. `protocol`: it broke the protocol. `memory`: it reached the
 * limit of its heap. `exited`: anything else that ended its process.
 */
export type ExitReason =
  | 'closed'
  | 'load_failed'
  | 'not_ready'
  | 'blocked'
  | 'worn'
  | 'protocol'
  | 'memory'
  | 'exited';

/** As the calls of the worker fail. */
export function failureOf(reason: ExitReason): 'lost' | 'blocked' | 'protocol' {
  if (reason === 'protocol') return 'protocol';
  return reason === 'blocked' || reason === 'not_ready' ? 'blocked' : 'lost';
}

export function reasonOf({ how, isOutOfHeap }: WorkerExit): 'memory' | 'exited' {
  return isOutOfHeap && isAborted(how) ? 'memory' : 'exited';
}

/** How V8 and Node end a process that has no heap left. */
const ABORTED: ReadonlySet<string> = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL', 'exit code 134']);

/** Whether more of what it has written may say why. */
export function isAborted(how: string): boolean {
  return ABORTED.has(how);
}

export function describeExit(exit: WorkerExit): string {
  const { how, heapMegabytes } = exit;
  if (reasonOf(exit) === 'memory') return `reached its memory limit of ${heapMegabytes} MiB`;
  // Nothing of this server sends it to a worker that runs.
  if (how === 'SIGKILL') return 'was ended by SIGKILL, as the kernel does where memory runs out';
  if (how.startsWith('SIG')) return `was ended by ${how}`;
  return how.startsWith('exit code') ? `ended by itself with ${how}` : how;
}
