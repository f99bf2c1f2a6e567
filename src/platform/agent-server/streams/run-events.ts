// The events of a run as a client reads them: those of the modes that it asked for, from where it left off.
import { RequestError } from '../../../base/http/request-body.ts';
import type { ServerEvent } from '../../api/stream/event-stream.ts';
import type { RunEvent } from './event-queue.ts';
import type { RunStreams } from './run-streams.ts';

export type RunToStream = {
  readonly runId: string;
  /** Of a client that reconnects, `-1` for everything; absent: from now on, and what nobody has read yet. */
  readonly lastEventId?: string | undefined;
  /** All when absent. */
  readonly modes?: ReadonlySet<string> | undefined;
  /** Of the call. */
  readonly signal: AbortSignal;
  /** The client left before the run had ended. */
  onLeft?(): void;
};

export async function* streamRun(
  streams: Pick<RunStreams, 'read'>,
  { runId, lastEventId, modes, signal, onLeft }: RunToStream,
): AsyncGenerator<readonly ServerEvent[], void, undefined> {
  let hasEnded = false;
  try {
    for await (const events of streams.read(runId, { after: parseEventId(lastEventId), signal })) {
      const wanted = modes === undefined ? events : events.filter(({ event }) => isWanted(event, modes));
      if (wanted.length > 0) yield wanted.map(toServerEvent);
    }
    hasEnded = !signal.aborted;
  } finally {
    if (!hasEnded && isLeft(signal)) onLeft?.();
  }
}

/** Undefined for what no event of a run has as its id. */
export function parseEventId(text: string | undefined): number | undefined {
  return text !== undefined && /^(?:-1|\d{1,15})$/.test(text) ? Number(text) : undefined;
}

export function toServerEvent({ id, event, data }: RunEvent): ServerEvent {
  return { id, event, text: data };
}

/** What every client gets, whatever its modes. */
const ALWAYS: ReadonlySet<string> = new Set(['metadata', 'error', 'feedback']);

/** `updates|ns` is of the mode `updates`, `messages/partial` of `messages`, and `messages` of `messages-tuple`. */
function isWanted(event: string, modes: ReadonlySet<string>): boolean {
  const [name = ''] = event.split('|');
  if (ALWAYS.has(name)) return true;
  if (name === 'messages') return modes.has('messages-tuple');
  return modes.has(name.split('/')[0] ?? name);
}

/** By its connection, and not because the process is shutting down or the access was revoked. */
function isLeft({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof RequestError && reason.kind === 'client_gone';
}
