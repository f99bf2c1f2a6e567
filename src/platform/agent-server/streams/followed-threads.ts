// Threads whose runs somebody reads one after another, here or in other processes: what a new run of such a thread says is kept
// for that reader from its first event on.

import type { JsonText } from '../../../agent-worker/protocol/messages.ts';

export type Follower = {
  /** Called when a writer of a run of the thread is opened here, before its first event. */
  onOpen(runId: string): void;
  /** A run of the thread may have begun or ended elsewhere. */
  onChange(): void;
  /** A client has changed the state of the thread. */
  onUpdate?(update: JsonText): void;
};

/** How long a notice that a thread is followed elsewhere counts. It is sent again before that. */
const NOTICE_MS = 15_000;
const REPEAT_MS = 5_000;

export class FollowedThreads {
  readonly #followers: Map<string, Set<Follower>> = new Map();
  /** Until when, by thread. */
  readonly #elsewhere: Map<string, number> = new Map();
  readonly #send: (threadId: string) => void;
  readonly #timer: NodeJS.Timeout;

  /** `send` tells the other processes that the thread is followed. */
  constructor(send: (threadId: string) => void) {
    this.#send = send;
    this.#timer = setInterval(() => this.repeat(), REPEAT_MS).unref();
  }

  /** Until the result is called. */
  follow(threadId: string, follower: Follower): () => void {
    const followers = this.#followers.get(threadId) ?? new Set();
    this.#followers.set(threadId, followers.add(follower));
    this.#send(threadId);
    return () => {
      followers.delete(follower);
      if (followers.size === 0) this.#followers.delete(threadId);
    };
  }

  /** A process said so, maybe this one. */
  noteElsewhere(threadId: string): void {
    this.#elsewhere.set(threadId, performance.now() + NOTICE_MS);
  }

  isFollowedElsewhere(threadId: string): boolean {
    return (this.#elsewhere.get(threadId) ?? 0) > performance.now();
  }

  opened(threadId: string, runId: string): void {
    for (const { onOpen } of this.#followers.get(threadId) ?? []) onOpen(runId);
  }

  changed(threadId: string): void {
    for (const { onChange } of this.#followers.get(threadId) ?? []) onChange();
  }

  isFollowedHere(threadId: string): boolean {
    return this.#followers.has(threadId);
  }

  /** For the readers of this process. */
  updated(threadId: string, update: JsonText): void {
    for (const { onUpdate } of this.#followers.get(threadId) ?? []) onUpdate?.(update);
  }

  /** Notices may have been lost. */
  repeat(): void {
    const nowMs = performance.now();
    for (const [threadId, untilMs] of this.#elsewhere) if (untilMs <= nowMs) this.#elsewhere.delete(threadId);
    for (const threadId of this.#followers.keys()) {
      this.#send(threadId);
      this.changed(threadId);
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
