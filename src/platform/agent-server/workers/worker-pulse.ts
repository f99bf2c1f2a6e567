// Whether a worker responds: it is asked at intervals, from its event loop, so that a graph that holds it up shows.
import { ProtocolError } from '../../../agent-worker/protocol/frame.ts';
import type { WorkerLimits } from './worker-limits.ts';

export type PulseEvents = {
  ping(sequence: number): void;
  /** `isBlocked` has changed. */
  onChange(): void;
  /** It has not responded for too long. */
  onDead(): void;
};

const SILENT_MS = 100;

export class WorkerPulse {
  readonly #limits: Pick<WorkerLimits, 'pingMs' | 'blockedMs' | 'killMs'>;
  readonly #events: PulseEvents;
  #timer: NodeJS.Timeout | undefined;
  #sequence = 0;
  /** Of the ping without a response. */
  #askedMs: number | undefined;
  #checkedMs = 0;
  #isBlocked = false;
  #isHeld = false;

  constructor(limits: Pick<WorkerLimits, 'pingMs' | 'blockedMs' | 'killMs'>, events: PulseEvents) {
    this.#limits = limits;
    this.#events = events;
  }

  get isBlocked(): boolean {
    return this.#isBlocked;
  }

  /** It has not responded at once. */
  get isSilent(): boolean {
    return this.#askedMs !== undefined && performance.now() - this.#askedMs > SILENT_MS;
  }

  start(): void {
    this.#checkedMs = performance.now();
    this.#ask();
    this.#timer = setInterval(() => this.#check(), this.#limits.pingMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Nothing is read of the worker: it may have responded. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (this.#askedMs !== undefined) this.#askedMs = performance.now();
  }

  /** Throws a ProtocolError. */
  receive(sequence: number): void {
    if (this.#askedMs === undefined || sequence !== this.#sequence)
      throw new ProtocolError('a pong without its ping');
    this.#askedMs = undefined;
    this.#change(false);
  }

  #ask(): void {
    this.#sequence += 1;
    this.#askedMs = performance.now();
    this.#events.ping(this.#sequence);
  }

  #check(): void {
    const { pingMs, blockedMs, killMs } = this.#limits;
    const nowMs = performance.now();
    const lateMs = nowMs - this.#checkedMs - pingMs;
    this.#checkedMs = nowMs;
    if (this.#isHeld) return;
    if (this.#askedMs === undefined) return this.#ask();
    // This process was held up itself: its worker may have responded meanwhile.
    if (lateMs > 2 * pingMs) this.#askedMs += lateMs;
    const silentMs = nowMs - this.#askedMs;
    if (silentMs >= killMs) this.#events.onDead();
    else if (silentMs >= blockedMs) this.#change(true);
  }

  #change(isBlocked: boolean): void {
    if (this.#isBlocked === isBlocked) return;
    this.#isBlocked = isBlocked;
    this.#events.onChange();
  }
}
