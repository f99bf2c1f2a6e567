// Calls again where no response came, or the platform asks for patience. What must not be done twice is looked for first.
import { setTimeout as delay } from 'node:timers/promises';
import { CallRejected, TransportError } from './platform-call.ts';

export type Wait = (ms: number) => Promise<unknown>;

/** The same call up to three times more; what must not happen twice gives `find`. */
export type Repetition<T> = {
  /** What the call would have returned, if the platform did it and its response was lost. */
  readonly find?: () => Promise<T | undefined>;
  /** Nothing is changed by the call: it is also repeated when a proxy before the platform responds for it. */
  readonly isRead?: boolean;
  /** Before each further try, in place of real time. */
  readonly wait?: Wait;
};

const MORE_TRIES = 3;
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 30_000;

export async function repeatCall<T>(work: () => Promise<T>, options: Repetition<T> = {}): Promise<T> {
  const { find, isRead = false, wait = delay } = options;
  for (let tries = 0; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      const waitMs = waitOf(error, isRead, tries);
      if (waitMs === undefined || tries === MORE_TRIES) throw error;
      await wait(waitMs);
      const found = error instanceof TransportError ? await find?.() : undefined;
      if (found !== undefined) return found;
    }
  }
}

/** Undefined: the same call would fail again, or could be done twice. */
function waitOf(error: unknown, isRead: boolean, tries: number): number | undefined {
  const grown = FIRST_WAIT_MS * 2 ** tries;
  if (error instanceof TransportError) return grown;
  if (!(error instanceof CallRejected)) return undefined;
  // 429 is said before anything is done.
  const isTemporary = error.status === 429 || (isRead && isOfProxy(error));
  return isTemporary ? Math.min(error.retryAfterMs ?? grown, MAX_WAIT_MS) : undefined;
}

const MAX_SILENCE_MS = 60_000;
const PAUSE_MS = 3_000;

/** Of a call that changes nothing: a platform that is started again for a minute does not end the command. */
export async function callPatiently<T>(
  call: () => Promise<T>,
  { wait = delay, now = Date.now }: { readonly wait?: Wait; readonly now?: () => number } = {},
): Promise<T> {
  const until = now() + MAX_SILENCE_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isUnreachable(error) || now() >= until) throw error;
      await wait(PAUSE_MS);
    }
  }
}

/** No response, or one of a proxy before the platform: it may be there again soon. */
function isUnreachable(error: unknown): boolean {
  return error instanceof TransportError || (error instanceof CallRejected && isOfProxy(error));
}

function isOfProxy({ status }: CallRejected): boolean {
  return [502, 503, 504].includes(status);
}
