// The HTTP/2 sessions of one sandbox: who may open a stream on which, more of them where one is full, and those that
// rest. A session is lent to one client connection for as long as that has streams on it.
import type { Socket } from 'node:net';
import { type DialTarget, type Dialler, chosenProtocol } from './dial.ts';
import type { Places } from './connection-quota.ts';
import type { Limits } from '../limits.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import { type StreamPlace, type UpstreamSession, openSession } from './h2-session.ts';

export type WantedPlace = {
  readonly key: string;
  readonly clientId: number;
  /** On a session of its own, which nobody uses afterwards. */
  readonly isPrivate: boolean;
};

export type UpstreamSessions = {
  /** A place on a session that stands. */
  take(wanted: WantedPlace): StreamPlace | undefined;
  /** A place, on a session that is opened for it where need be. */
  open(wanted: WantedPlace, target: DialTarget, signal: AbortSignal): Promise<StreamPlace | Refusal>;
  /** Keeps a connection to a host that chose h2 for whoever comes first. */
  adopt(key: string, socket: Socket): Promise<UpstreamSession>;
  /** From here on only sessions whose key begins so are lent; others end with their last stream. */
  keepOnly(prefix: string): void;
  close(): void;
  readonly count: number;
};

const SWEEP_MS = 1_000;
// Each round of waiting ends with a session opened, or one whose limit is known: more rounds than this mean a host that
// accepts sessions and grants no streams.
const MAX_ROUNDS = 200;

type Opening = {
  readonly done: Promise<UpstreamSession | Refusal>;
  readonly abort: AbortController;
  waiting: number;
};

export function createUpstreamSessions(options: {
  readonly dialler: Dialler;
  readonly limits: Limits;
  /** Of the process. */
  readonly places: Places;
}): UpstreamSessions {
  const { dialler, limits, places } = options;
  const resting = new Set<UpstreamSession>();
  const byKey = new Map<string, Set<UpstreamSession>>();
  const openings = new Map<string, Opening>();
  let count = 0;
  let prefix = '';
  let isClosed = false;
  let sweeper: NodeJS.Timeout | undefined;

  function keep(session: UpstreamSession): void {
    const known = byKey.get(session.key);
    if (known) known.add(session);
    else byKey.set(session.key, new Set([session]));
    count += 1;
    sweeper ??= setInterval(sweep, SWEEP_MS).unref();
    session.http2.once('close', () => forget(session));
    if (!isLent(session)) session.destroy();
  }

  function wake(session: UpstreamSession): void {
    if (resting.delete(session)) places.give(1);
  }

  function forget(session: UpstreamSession): void {
    wake(session);
    const known = byKey.get(session.key);
    if (!known?.delete(session)) return;
    count -= 1;
    if (known.size === 0) byKey.delete(session.key);
    if (count > 0) return;
    clearInterval(sweeper);
    sweeper = undefined;
  }

  const all = (): UpstreamSession[] => [...byKey.values()].flatMap((sessions) => [...sessions]);
  const isLent = ({ key }: UpstreamSession): boolean => !isClosed && key.startsWith(prefix);

  function sweep(): void {
    const now = performance.now();
    for (const session of all()) if (session.isStale(now)) session.destroy();
  }

  function place(session: UpstreamSession, { clientId, isPrivate }: WantedPlace): StreamPlace {
    const isReused = session.uses > 0;
    wake(session);
    session.clientId = clientId;
    session.isPrivate ||= isPrivate;
    session.streams += 1;
    session.uses += 1;
    let isHeld = true;
    return {
      session,
      isReused,
      discard() {
        if (!isHeld) return;
        isHeld = false;
        session.streams -= 1;
        if (session.isIdle) rest(session);
      },
    };
  }

  function rest(session: UpstreamSession): void {
    session.clientId = 0;
    session.idleSinceMs = performance.now();
    const isCrowded = places.areTaken || resting.size >= limits.maxIdleUpstream;
    if (!session.isOpen || session.isPrivate || !isLent(session) || isCrowded) return session.destroy();
    resting.add(session);
    places.take();
  }

  function take(wanted: WantedPlace): StreamPlace | undefined {
    let found: UpstreamSession | undefined;
    for (const session of wanted.isPrivate ? [] : (byKey.get(wanted.key) ?? [])) {
      if (!session.hasCapacity || session.isPrivate) continue;
      if (session.clientId === wanted.clientId) return place(session, wanted);
      if (session.isIdle) found = session;
    }
    return found && place(found, wanted);
  }

  async function dial(
    key: string,
    target: DialTarget,
    signal: AbortSignal,
  ): Promise<UpstreamSession | Refusal> {
    const socket = await dialler.dial(target, signal);
    if (isRefusal(socket)) return socket;
    if (chosenProtocol(socket) !== 'h2') {
      socket.destroy();
      return refuse('h2_unavailable', 'chose another');
    }
    return adopt(key, socket);
  }

  async function adopt(key: string, socket: Socket): Promise<UpstreamSession> {
    const session = await openSession(socket, key, limits);
    keep(session);
    return session;
  }

  /** Streams that come together open one session together; it is given up when the last of them has gone. */
  async function join(
    { key, clientId }: WantedPlace,
    target: DialTarget,
    signal: AbortSignal,
  ): Promise<UpstreamSession | Refusal> {
    const id = `${clientId} ${key}`;
    const opening = openings.get(id) ?? begin(id, key, target);
    const leave = (): void => {
      opening.waiting -= 1;
      if (opening.waiting > 0) return;
      // Whoever comes now must not wait for what was given up.
      if (openings.get(id) === opening) openings.delete(id);
      opening.abort.abort();
    };
    opening.waiting += 1;
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await opening.done;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  function begin(id: string, key: string, target: DialTarget): Opening {
    const abort = new AbortController();
    const done = dial(key, target, abort.signal).finally(() => {
      if (openings.get(id) === opening) openings.delete(id);
    });
    const opening: Opening = { done, abort, waiting: 0 };
    openings.set(id, opening);
    return opening;
  }

  return {
    take,

    async adopt(key, socket) {
      const session = await adopt(key, socket);
      if (session.isIdle) rest(session);
      return session;
    },

    async open(wanted, target, signal) {
      if (wanted.isPrivate) {
        const own = await dial(wanted.key, target, signal);
        return isRefusal(own) ? own : place(own, wanted);
      }
      for (let round = 0; round < MAX_ROUNDS && !signal.aborted; round += 1) {
        const found = take(wanted);
        if (found) return found;
        const sessions = [...(byKey.get(wanted.key) ?? [])];
        const pending = sessions.find((one) => one.clientId === wanted.clientId && !one.isSettled);
        if (pending) await pending.settled;
        else {
          const opened = await join(wanted, target, signal);
          if (isRefusal(opened)) return opened;
        }
      }
      return refuse('upstream_unreachable', signal.aborted ? 'aborted' : 'no_stream_granted');
    },

    keepOnly(wanted) {
      prefix = wanted;
      for (const session of all()) if (session.isIdle && !isLent(session)) session.destroy();
    },

    close() {
      isClosed = true;
      for (const session of all()) session.destroy();
    },

    get count() {
      return count;
    },
  };
}
