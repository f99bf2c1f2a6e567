// The HTTP/2 sessions to upstreams of one sandbox: which client connection may open a stream on which session, when to
// open another session, and when idle ones end. A session serves one client connection while that has streams on it.
import type { Socket } from 'node:net';
import type { Limits } from '../limits.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import type { ConnectionQuota } from './connection-quota.ts';
import { type DialTarget, type Dialler, chosenProtocol } from './dial.ts';
import { type StreamSlot, type UpstreamSession, openSession } from './h2-session.ts';

export type WantedStream = {
  readonly key: string;
  readonly clientId: number;
  /** On a session of its own, which is not used afterwards. */
  readonly isPrivate: boolean;
};

const SWEEP_MS = 1_000;
// Each round of waiting ends with a new session, or with one whose limit is known. More rounds than this mean an upstream
// that accepts sessions and grants no streams.
const MAX_ROUNDS = 200;

/** A session that is being opened for all streams of one client connection. */
type Opening = {
  readonly done: Promise<UpstreamSession | Refusal>;
  readonly abort: AbortController;
  waiting: number;
};

type SessionsOptions = {
  readonly dialler: Dialler;
  readonly limits: Limits;
  /** Idle connections of the whole process. */
  readonly quota: ConnectionQuota;
};

export class UpstreamSessions {
  readonly #options: SessionsOptions;
  readonly #idle = new Set<UpstreamSession>();
  readonly #byKey = new Map<string, Set<UpstreamSession>>();
  readonly #openings = new Map<string, Opening>();
  #count = 0;
  #prefix = '';
  #isClosed = false;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#count;
  }

  /** A slot on an open session. */
  take(wanted: WantedStream): StreamSlot | undefined {
    let found: UpstreamSession | undefined;
    for (const session of wanted.isPrivate ? [] : (this.#byKey.get(wanted.key) ?? [])) {
      if (!session.hasCapacity || session.isPrivate) continue;
      if (session.clientId === wanted.clientId) return this.#slot(session, wanted);
      if (session.isIdle) found = session;
    }
    return found && this.#slot(found, wanted);
  }

  /** A slot, on a session that is opened for it if necessary. */
  async open(wanted: WantedStream, target: DialTarget, signal: AbortSignal): Promise<StreamSlot | Refusal> {
    if (wanted.isPrivate) {
      const own = await this.#dial(wanted.key, target, signal);
      return isRefusal(own) ? own : this.#slot(own, wanted);
    }
    for (let round = 0; round < MAX_ROUNDS && !signal.aborted; round += 1) {
      const found = this.take(wanted);
      if (found) return found;
      const sessions = [...(this.#byKey.get(wanted.key) ?? [])];
      const pending = sessions.find((one) => one.clientId === wanted.clientId && !one.isSettled);
      if (pending) await pending.settled;
      else {
        const opened = await this.#join(wanted, target, signal);
        if (isRefusal(opened)) return opened;
      }
    }
    return refuse('upstream_unreachable', signal.aborted ? 'aborted' : 'no_stream_granted');
  }

  /** Takes over a connection to an upstream that chose h2, for the first stream that wants it. */
  async adopt(key: string, socket: Socket): Promise<UpstreamSession> {
    const session = await this.#begin(key, socket);
    if (session.isIdle) this.#rest(session);
    return session;
  }

  /** From now on only sessions whose key has this prefix get new streams; others end with their last stream. */
  keepOnly(prefix: string): void {
    this.#prefix = prefix;
    for (const session of this.#all()) if (session.isIdle && !this.#isCurrent(session)) session.destroy();
  }

  close(): void {
    this.#isClosed = true;
    for (const session of this.#all()) session.destroy();
  }

  #all(): UpstreamSession[] {
    return [...this.#byKey.values()].flatMap((sessions) => [...sessions]);
  }

  #isCurrent({ key }: UpstreamSession): boolean {
    return !this.#isClosed && key.startsWith(this.#prefix);
  }

  #slot(session: UpstreamSession, { clientId, isPrivate }: WantedStream): StreamSlot {
    const isReused = session.uses > 0;
    this.#wake(session);
    session.clientId = clientId;
    session.isPrivate ||= isPrivate;
    session.streams += 1;
    session.uses += 1;
    let isHeld = true;
    return {
      session,
      isReused,
      discard: () => {
        if (!isHeld) return;
        isHeld = false;
        session.streams -= 1;
        if (session.isIdle) this.#rest(session);
      },
    };
  }

  #wake(session: UpstreamSession): void {
    if (this.#idle.delete(session)) this.#options.quota.release(1);
  }

  #rest(session: UpstreamSession): void {
    const { quota, limits } = this.#options;
    session.clientId = 0;
    session.idleSinceMs = performance.now();
    const isFull = quota.isExhausted || this.#idle.size >= limits.maxIdleUpstream;
    if (!session.isOpen || session.isPrivate || !this.#isCurrent(session) || isFull) return session.destroy();
    this.#idle.add(session);
    quota.take();
  }

  async #dial(key: string, target: DialTarget, signal: AbortSignal): Promise<UpstreamSession | Refusal> {
    const socket = await this.#options.dialler.dial(target, signal);
    if (isRefusal(socket)) return socket;
    if (chosenProtocol(socket) !== 'h2') {
      socket.destroy();
      return refuse('h2_unavailable', 'chose another');
    }
    return this.#begin(key, socket);
  }

  async #begin(key: string, socket: Socket): Promise<UpstreamSession> {
    const session = await openSession(socket, key, this.#options.limits);
    const known = this.#byKey.get(key);
    if (known) known.add(session);
    else this.#byKey.set(key, new Set([session]));
    this.#count += 1;
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    session.http2.once('close', () => this.#forget(session));
    if (!this.#isCurrent(session)) session.destroy();
    return session;
  }

  #forget(session: UpstreamSession): void {
    this.#wake(session);
    const known = this.#byKey.get(session.key);
    if (!known?.delete(session)) return;
    this.#count -= 1;
    if (known.size === 0) this.#byKey.delete(session.key);
    if (this.#count > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  #sweep(): void {
    const now = performance.now();
    for (const session of this.#all()) if (session.isStale(now)) session.destroy();
  }

  /** Streams that arrive together open one session together. The dial is aborted when the last of them has left. */
  async #join(
    { key, clientId }: WantedStream,
    target: DialTarget,
    signal: AbortSignal,
  ): Promise<UpstreamSession | Refusal> {
    const id = `${clientId} ${key}`;
    const opening = this.#openings.get(id) ?? this.#startOpening(id, key, target);
    const leave = (): void => {
      opening.waiting -= 1;
      if (opening.waiting > 0) return;
      // A later stream must not wait for the aborted dial.
      if (this.#openings.get(id) === opening) this.#openings.delete(id);
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

  #startOpening(id: string, key: string, target: DialTarget): Opening {
    const abort = new AbortController();
    const done = this.#dial(key, target, abort.signal).finally(() => {
      if (this.#openings.get(id) === opening) this.#openings.delete(id);
    });
    const opening: Opening = { done, abort, waiting: 0 };
    this.#openings.set(id, opening);
    return opening;
  }
}
