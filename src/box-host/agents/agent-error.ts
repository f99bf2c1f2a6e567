// Why a call to a box's agent failed. The message is ours, for the caller; nothing in it came out of the box.

export type AgentErrorKind =
  /** The call itself failed in the box, for the reason in `code`. */
  | 'failed'
  /** The agent ended: killed by a process of the box, or with the box. */
  | 'gone'
  /** It does not respond. */
  | 'unresponsive'
  /** It sent what the protocol does not allow. */
  | 'protocol'
  /** The box was stopped. */
  | 'stopped'
  /** The caller ended the call. */
  | 'cancelled'
  /** Too much is running. */
  | 'busy'
  /** No agent could be started. */
  | 'unavailable'
  /** Output that a client had yet to get was given up for lack of memory. */
  | 'output_lost';

const MESSAGES: Readonly<Record<Exclude<AgentErrorKind, 'failed'>, string>> = {
  gone: 'The process that serves the sandbox ended while the request was running',
  unresponsive: 'The process that serves the sandbox does not respond',
  protocol: 'The process that serves the sandbox sent invalid data',
  stopped: 'The sandbox was stopped',
  cancelled: 'The request was cancelled',
  busy: 'Too many requests are running in the sandbox',
  unavailable: 'The sandbox is not ready for requests',
  output_lost: 'Output that was not sent yet is no longer kept: too much output of commands is held',
};

export class AgentError extends Error {
  override readonly name: string = 'AgentError';
  readonly kind: AgentErrorKind;
  /** Of a failed call: an error code of the system, such as ENOENT, or one of the agent. */
  readonly code: string | undefined;

  constructor(kind: AgentErrorKind, code?: string) {
    super(kind === 'failed' ? messageOf(code ?? '') : MESSAGES[kind]);
    this.kind = kind;
    this.code = code;
  }
}

const CODES: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'No such file or directory'],
  ['ENOTDIR', 'A part of the path is not a directory'],
  ['EISDIR', 'The path is a directory'],
  ['NOT_A_FILE', 'The path is not a regular file'],
  ['NOT_A_DIRECTORY', 'The path is not a directory'],
  ['EACCES', 'Permission denied'],
  ['EPERM', 'Operation not permitted'],
  ['EROFS', 'The file system is read-only'],
  ['ENOSPC', 'No space is left in the sandbox'],
  ['EDQUOT', 'No space is left in the sandbox'],
  ['ENAMETOOLONG', 'The path is too long'],
  ['ELOOP', 'The path has too many symbolic links'],
  ['E2BIG', 'The command or its environment is too long'],
  ['EAGAIN', 'The sandbox has reached its limit of processes'],
  ['EMFILE', 'The sandbox has too many open files'],
  ['ENFILE', 'The sandbox has too many open files'],
  ['ENOMEM', 'The sandbox has no memory left'],
  ['CWD_MISSING', 'The working directory does not exist'],
  ['SHELL_MISSING', 'The shell does not exist in the sandbox'],
  ['SHORT_FILE', 'The file became shorter while it was read'],
  ['PORT_REFUSED', 'The port is not available to requests from outside'],
  ['ECONNREFUSED', 'Nothing in the sandbox listens on the port'],
]);

function messageOf(code: string): string {
  return CODES.get(code) ?? 'The operation failed in the sandbox';
}
