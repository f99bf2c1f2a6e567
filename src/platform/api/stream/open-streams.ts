// The open streams of this process. Each ends when what it was authorized by has ended: all of them are confirmed together,
// every half minute, and those of an organization at once when it has taken access away.
import { DomainError } from '../../../base/domain-error.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import type { Authenticator } from '../../identity/authentication.ts';
import type { RequestPools } from '../../store/pools.ts';
import type { Access, Entry, Grant } from '../access.ts';

export type OpenStream = {
  readonly access: Access;
  readonly granted: Grant;
  readonly requestId: string;
  /** The request that opened it, for an access that has nothing but the request to confirm its grant by. */
  toEntry(known: Pick<Entry, 'db' | 'authenticator'>): Entry;
  end(reason: DomainError): void;
};

export type OpenStreams = {
  /** Until it is disposed of. */
  add(stream: OpenStream): Disposable;
  /**
   * Confirms the open streams of an organization, or all, and ends those whose access has ended. Never rejects. What one
   * organization revokes in a loop costs nothing where it has no streams.
   */
  sweep(organizationId?: string): Promise<void>;
};

export type OpenStreamsOptions = {
  readonly pools: Pick<RequestPools, 'authentication'>;
  readonly authenticator: Authenticator;
  readonly log: Log;
  /** Milliseconds that only grow. */
  readonly now?: () => number;
  readonly sweepMs?: number;
};

const SWEEP_MS = 30_000;
/** A stream that cannot be confirmed for so long ends: its client comes back and is authenticated again. */
const UNCONFIRMED_MS = 120_000;

export function createOpenStreams(options: OpenStreamsOptions): OpenStreams {
  const { log, now = () => performance.now(), sweepMs = SWEEP_MS } = options;
  /** With the time since which the access of each is known to be valid. */
  const open = new Map<OpenStream, number>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  /** Of these organizations; `undefined` is all. */
  let wanted = new Set<string | undefined>();

  const confirm = async (organizations: ReadonlySet<string | undefined>): Promise<void> => {
    const startedMs = now();
    const isMeant = ({ granted: { organizationId } }: OpenStream): boolean =>
      organizations.has(undefined) || organizationId === undefined || organizations.has(organizationId);
    for (const [access, streams] of groupByAccess([...open.keys()].filter(isMeant)))
      try {
        const ended = await findEnded(options, access, streams);
        for (const stream of streams)
          if (ended.has(stream)) end(stream, 'unauthenticated', 'The access to this stream was revoked');
          else if (open.has(stream)) open.set(stream, startedMs);
      } catch (error) {
        log.warn(describeBug(error), 'the access to open streams could not be confirmed');
        for (const stream of streams)
          if (now() - (open.get(stream) ?? Infinity) >= UNCONFIRMED_MS)
            end(stream, 'unavailable', 'The access to this stream could not be confirmed: open it again');
      }
  };
  const end = (stream: OpenStream, kind: 'unauthenticated' | 'unavailable', message: string): void => {
    if (!open.delete(stream)) return;
    log.info(
      { code: kind, key: stream.granted.caller?.keyId, request: stream.requestId },
      'a stream was ended',
    );
    tryToEnd(stream, new DomainError(kind, message), log);
  };
  // One at a time, and one more when it was asked for meanwhile: it may have read what was revoked since.
  const run = async (): Promise<void> => {
    while (wanted.size > 0) {
      const organizations = wanted;
      wanted = new Set();
      await confirm(organizations);
    }
    running = undefined;
  };
  const sweep = (organizationId?: string): Promise<void> => {
    wanted.add(organizationId);
    return (running ??= run());
  };
  return {
    add(stream) {
      open.set(stream, now());
      timer ??= setInterval(() => void sweep(), sweepMs).unref();
      return {
        [Symbol.dispose]() {
          open.delete(stream);
          if (open.size > 0) return;
          clearInterval(timer);
          timer = undefined;
        },
      };
    },
    sweep,
  };
}

/** What is wrong with one stream must not keep others open. */
function tryToEnd(stream: OpenStream, reason: DomainError, log: Log): void {
  try {
    stream.end(reason);
  } catch (error) {
    log.error(describeBug(error), 'a stream could not be ended');
  }
}

/** Those that one query confirms: accesses that differ in their permission share a function. */
function groupByAccess(streams: Iterable<OpenStream>): Iterable<readonly [Access, readonly OpenStream[]]> {
  const groups = Map.groupBy(streams, ({ access }) => access.findRevoked ?? access);
  return Array.from(groups.values(), (group) => [group[0]!.access, group] as const);
}

async function findEnded(
  { pools, authenticator }: OpenStreamsOptions,
  access: Access,
  streams: readonly OpenStream[],
): Promise<ReadonlySet<OpenStream>> {
  const known = { db: pools.authentication.db, authenticator };
  if (access.findRevoked !== undefined) return access.findRevoked(known, streams);
  const ended = new Set<OpenStream>();
  for (const stream of streams) if (!(await isConfirmed(stream, stream.toEntry(known)))) ended.add(stream);
  return ended;
}

async function isConfirmed({ access, granted }: OpenStream, entry: Entry): Promise<boolean> {
  try {
    await access.confirm(entry, granted);
    return true;
  } catch (error) {
    if (error instanceof DomainError && (error.kind === 'unauthenticated' || error.kind === 'forbidden'))
      return false;
    throw error;
  }
}
