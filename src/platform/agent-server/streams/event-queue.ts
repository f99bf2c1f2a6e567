// Events of a run in memory, in order, with their size.
import type { JsonText, WorkerEvent } from '../../../agent-worker/protocol/messages.ts';

export type RunEvent = {
  /** `0`, `1`, `2` …, going on over the attempts of the run. */
  readonly id: string;
  readonly event: string;
  readonly data: JsonText;
};

/** An event that several readers may share. */
export type KeptEvent = {
  readonly number: number;
  readonly bytes: number;
  readonly sent: RunEvent;
};

/** What an event costs beside its text. */
const EVENT_BYTES = 128;

/** The name of an event is a line of its own: what would end it is replaced. */
export function toKeptEvent({ event, data }: WorkerEvent, number: number): KeptEvent {
  const name = event.replace(/[\r\n\0]/g, '\uFFFD');
  const bytes = EVENT_BYTES + Buffer.byteLength(data) + name.length;
  return { number, bytes, sent: { id: String(number), event: name, data } };
}

export class EventQueue {
  #events: KeptEvent[] = [];
  #start = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get first(): KeptEvent | undefined {
    return this.#events[this.#start];
  }

  push(event: KeptEvent): void {
    this.#events.push(event);
    this.#bytes += event.bytes;
  }

  shift(): KeptEvent | undefined {
    const event = this.first;
    if (event === undefined) return undefined;
    this.#start += 1;
    this.#bytes -= event.bytes;
    if (this.#start === this.#events.length) this.clear();
    else if (this.#start > 1024 && this.#start * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#start);
      this.#start = 0;
    }
    return event;
  }

  clear(): void {
    this.#events = [];
    this.#start = 0;
    this.#bytes = 0;
  }

  *[Symbol.iterator](): Iterator<KeptEvent> {
    for (let index = this.#start; index < this.#events.length; index += 1) yield this.#events[index]!;
  }
}
