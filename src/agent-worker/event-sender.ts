// Sends the events of one call: those of one turn of the event loop together, and no more than the server has granted, so that
// a slow reader slows the graph.
import type { Send } from './channel.ts';
import { Refusal } from './method.ts';
import { SendCredit } from './protocol/credit.ts';
import { MAX_FRAME_BYTES, type WorkerEvent } from './protocol/messages.ts';

/** Of a frame, where its events are shorter. */
const BATCH_CHARS = 64 * 1024;
/** An event of this length or less fits in a frame, whatever it contains: JSON writes at most 6 bytes for a character. */
const SAFE_CHARS = Math.floor(MAX_FRAME_BYTES / 8);

export class EventSender {
  readonly #id: number;
  readonly #send: Send;
  readonly #credit: SendCredit = new SendCredit();
  /** Those before `#next` are sent. */
  #pending: WorkerEvent[] = [];
  #next = 0;
  #pendingChars = 0;
  #isScheduled = false;

  constructor(id: number, send: Send) {
    this.#id = id;
    this.#send = send;
  }

  /** Tells the server that the call is being worked on, before it has any event. */
  begin(): void {
    this.#credit.use(this.#send({ type: 'events', id: this.#id, events: [] }));
  }

  /** Resolves when more may be sent. Rejects with a Refusal for an event that no frame can hold. */
  async emit(events: readonly WorkerEvent[]): Promise<void> {
    for (const event of events) this.#add(event);
    if (this.#pendingChars >= BATCH_CHARS) this.#flush();
    else this.#schedule();
    if (!this.#credit.isOpen) await this.#credit.opened();
  }

  /** Throws a ProtocolError. */
  grant(bytes: number): void {
    this.#credit.grant(bytes);
    this.#flush();
  }

  /** Resolves when everything is sent, or nothing is to be sent any more. */
  async finish(): Promise<void> {
    this.#flush();
    while (this.#next < this.#pending.length) {
      await this.#credit.opened();
      this.#flush();
    }
  }

  /** What the credit allows is sent, and the rest is discarded. */
  close(): void {
    this.#flush();
    this.#clear();
    this.#credit.close();
  }

  #add(event: WorkerEvent): void {
    const { length } = event.data;
    if (length > SAFE_CHARS && Buffer.byteLength(JSON.stringify(event)) > MAX_FRAME_BYTES - BATCH_CHARS)
      throw new Refusal(
        'invalid',
        `an event ${event.event} is larger than ${MAX_FRAME_BYTES / 1024 / 1024} MiB`,
      );
    this.#pending.push(event);
    this.#pendingChars += length + event.event.length;
  }

  /** After what is ready to run has run: a graph often emits several events before it waits for anything. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    process.nextTick(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#next < this.#pending.length && this.#credit.isOpen) {
      const events = this.#takeBatch();
      this.#credit.use(this.#send({ type: 'events', id: this.#id, events }));
    }
    if (this.#next === this.#pending.length) this.#clear();
  }

  #takeBatch(): readonly WorkerEvent[] {
    const start = this.#next;
    let chars = 0;
    for (; this.#next < this.#pending.length; this.#next += 1) {
      const { data = '', event = '' } = this.#pending[this.#next] ?? {};
      if (chars > 0 && chars + data.length > BATCH_CHARS) break;
      chars += data.length + event.length;
    }
    this.#pendingChars -= chars;
    return this.#pending.slice(start, this.#next);
  }

  #clear(): void {
    this.#pending = [];
    this.#next = 0;
    this.#pendingChars = 0;
  }
}
