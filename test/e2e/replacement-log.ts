// The log of a run of replacements: which documents were activated and when, what arrived at the origin and when, and the
// responses to the clients. Checks each arrival and each response; opens no socket.
import { type Percentiles, percentilesOf } from '../../bench/support/percentiles.ts';
import { type Numbered, countIn, fieldsOf, textOf } from './replacement-documents.ts';

type Entry = {
  readonly expected: string;
  readonly sentMs: number;
  /** Undefined until the response to the write. */
  respondedMs: number | undefined;
  lastArrivalMs: number;
};

const MAX_VIOLATIONS = 10;

export class ReplacementLog {
  readonly violations: string[] = [];
  violationCount = 0;
  arrivals = 0;
  responses = 0;
  /** Requests with a 503 because the rules changed during each dial. */
  abandoned = 0;
  readonly #entries: Map<number, Entry> = new Map();
  #sent = 0;
  #responded = 0;

  /** Called before the write that activates the document is sent. */
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

  /** The number of the document that is certainly active. */
  get responded(): number {
    return this.#responded;
  }

  arrive(fields: string): void {
    this.arrivals += 1;
    const entry = this.#entries.get(countIn(fields));
    if (entry?.expected !== fields) return this.violate(`arrived with ${JSON.stringify(fields)}`);
    entry.lastArrivalMs = performance.now();
  }

  /** `inForce` is the value of `responded` when the request began. */
  read(fields: string, inForce: number): void {
    this.responses += 1;
    const count = countIn(fields);
    if (this.#entries.get(count)?.expected !== fields)
      return this.violate(`the response has ${JSON.stringify(fields)}`);
    if (count < inForce || count > this.#sent)
      this.violate(`carried ${count}, but ${inForce} was active before and ${this.#sent} is the newest`);
  }

  violate(what: string): void {
    this.violationCount += 1;
    if (this.violations.length < MAX_VIOLATIONS) this.violations.push(what);
  }

  /** From the write that replaced a document to the last arrival of its headers; 0 when none arrived after it. */
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
