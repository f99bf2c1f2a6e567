// Why a call failed, as a code: the error code of the system, or one of these. Texts are written by the box host.

export type CallErrorCode =
  | 'CWD_MISSING'
  | 'SHELL_MISSING'
  | 'NOT_A_FILE'
  | 'NOT_A_DIRECTORY'
  | 'PORT_REFUSED'
  | 'SHORT_FILE'
  | 'CANCELLED'
  | 'UNKNOWN_METHOD';

export class CallError extends Error {
  override readonly name: string = 'CallError';
  readonly code: CallErrorCode;

  constructor(code: CallErrorCode) {
    super(code);
    this.code = code;
  }
}

/** A code that the protocol allows. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^[A-Z][A-Z0-9_]{1,31}$/.test(code) ? code : 'FAILED';
}
