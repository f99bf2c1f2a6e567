// Sessions of the page: a random id that a cookie holds and this process knows as a hash. They end when they are not used for half an
// hour, and twelve hours after they began; none outlives the process.
import { createHash, randomBytes } from 'node:crypto';
import { Secret } from '../../base/secret.ts';

/** Milliseconds. The first cannot be set; the second also goes on while the machine sleeps. A session ends by either of them. */
export type SessionClock = { monotonic(): number; wall(): number };

export const IDLE_MS = 30 * 60_000;
export const SESSION_MS = 12 * 3_600_000;
/** Whoever begins one has the token of the API: the next one ends the one that was not used for longest. */
export const MAX_SESSIONS = 16;

type Moment = { readonly monotonic: number; readonly wall: number };

export class PageSession {
  /** Forms send it beside the cookie, which other origins of the same site can make a browser send. */
  readonly formToken: string = randomBytes(32).toString('base64url');
  readonly #ended: AbortController = new AbortController();
  readonly #begun: Moment;
  #used: Moment;

  constructor(now: Moment) {
    this.#begun = now;
    this.#used = now;
  }

  /** Aborts when the session ends. An expiry is noticed when somebody asks for the session. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  hasFormToken(candidate: string): boolean {
    return new Secret(this.formToken).equals(candidate);
  }

  isExpired(now: Moment): boolean {
    return since(this.#used, now) >= IDLE_MS || since(this.#begun, now) >= SESSION_MS;
  }

  use(now: Moment): void {
    this.#used = now;
  }

  end(): void {
    this.#ended.abort();
  }
}

export class PageSessions {
  readonly #clock: SessionClock;
  /** By the hash of the id, the one that was not used for longest first. */
  readonly #sessions: Map<string, PageSession> = new Map();

  constructor(clock: SessionClock) {
    this.#clock = clock;
  }

  /** Returns the text of the cookie: never one that a client proposes, which somebody else may know. */
  begin(isTls: boolean): string {
    this.#endExpired();
    const [oldest] = this.#sessions.size < MAX_SESSIONS ? [] : this.#sessions.keys();
    if (oldest !== undefined) this.#end(oldest);
    const text = randomBytes(32).toString('base64url');
    this.#sessions.set(keyOf(text, isTls), new PageSession(this.#now()));
    return text;
  }

  /** The session, which counts as used now. `isTls`: the cookie has the name that only connections with TLS can set. */
  find(text: string, isTls: boolean): PageSession | undefined {
    const key = keyOf(text, isTls);
    const session = this.#sessions.get(key);
    if (session === undefined) return undefined;
    const now = this.#now();
    if (session.isExpired(now)) return this.#end(key);
    session.use(now);
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    return session;
  }

  /** For what goes on without requests: whether the session is open, which then counts as used. */
  keep(session: PageSession): boolean {
    const now = this.#now();
    if (session.ended.aborted || session.isExpired(now)) return false;
    session.use(now);
    return true;
  }

  end(text: string, isTls: boolean): void {
    this.#end(keyOf(text, isTls));
  }

  /** How many are open. */
  get size(): number {
    this.#endExpired();
    return this.#sessions.size;
  }

  #endExpired(): void {
    const now = this.#now();
    for (const [key, session] of this.#sessions) if (session.isExpired(now)) this.#end(key);
  }

  #end(key: string): undefined {
    this.#sessions.get(key)?.end();
    this.#sessions.delete(key);
  }

  #now(): Moment {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.wall() };
  }
}

/** A clock that was set back makes no session longer, and a machine that slept makes none longer either. */
function since(start: Moment, now: Moment): number {
  return Math.max(now.monotonic - start.monotonic, now.wall - start.wall);
}

/** The id has 256 random bits, so that a hash without a salt is enough. */
function keyOf(text: string, isTls: boolean): string {
  return `${isTls ? 'tls' : 'plain'} ${createHash('sha256').update(text, 'utf8').digest('base64url')}`;
}
