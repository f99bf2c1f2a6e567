// The books of a run of replacements: which documents were put in force and when, what arrived at the origin and when,
// what the clients were answered. It judges each arrival and each answer, and opens no socket.
import { type Percentiles, percentilesOf } from '../../bench/support/percentiles.ts';
import { type Numbered, countIn, fieldsOf, textOf } from './replacement-documents.ts';

type Entry = {
  readonly expected: string;
  readonly sentMs: number;
  /** Undefined until the write was answered. */
  respondedMs: number | undefined;
  lastArrivalMs: number;
};

const KEPT_VIOLATIONS = 10;

export class ReplacementLog {
  readonly violations: string[] = [];
  violationCount = 0;
  arrivals = 0;
  responses = 0;
  /** Requests that were answered with 503 because the rules changed with each dial. */
  givenUp = 0;
  readonly #entries: Map<number, Entry> = new Map();
  #sent = 0;
  #responded = 0;

  /** The write that puts the document in force is about to be sent. */
  send(document: Numbered): void {
    this.#sent = document.count;
    this.#entries.set(document.count, {
      expected: textOf(fieldsOf(document)),
      sentMs: performance.now(),
      respondedMs: undefined,
      lastArrivalMs: 0,
    });
  }

  response(count: number): void {
    const entry = this.#entries.get(count);
    if (entry) entry.respondedMs = performance.now();
    this.#responded = count;
  }

  /** Of the document that is certainly in force. */
  get responded(): number {
    return this.#responded;
  }

  arrive(fields: string): void {
    this.arrivals += 1;
    const entry = this.#entries.get(countIn(fields));
    if (entry?.expected !== fields) return this.violate(`arrived with ${JSON.stringify(fields)}`);
    entry.lastArrivalMs = performance.now();
  }

  /** `inForce` is what `answered` was when the request began. */
  read(fields: string, inForce: number): void {
    this.responses += 1;
    const count = countIn(fields);
    if (this.#entries.get(count)?.expected !== fields)
      return this.violate(`answered with ${JSON.stringify(fields)}`);
    if (count < inForce || count > this.#sent)
      this.violate(`carried ${count}, where ${inForce} was in force before and ${this.#sent} is the newest`);
  }

  violate(what: string): void {
    this.violationCount += 1;
    if (this.violations.length < KEPT_VIOLATIONS) this.violations.push(what);
  }

  /** From the write that replaced a document to the last arrival of what it injected; 0 if none came after. */
  lags(): { readonly sinceResponse: Percentiles; readonly sinceSent: Percentiles } {
    const pairs = [...this.#entries].flatMap(([count, { lastArrivalMs }]) => {
      const next = this.#entries.get(count + 1);
      return next?.respondedMs === undefined || lastArrivalMs === 0
        ? []
        : [[lastArrivalMs - next.respondedMs, lastArrivalMs - next.sentMs] as const];
    });
    const of = (which: 0 | 1): Percentiles =>
      percentilesOf([Float64Array.from(pairs, (pair) => Math.max(0, pair[which]))]);
    return { sinceResponse: of(0), sinceSent: of(1) };
  }
}
