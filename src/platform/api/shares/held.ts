// What a request that a gateway forwards holds until it ends, and that it ends when its caller has lost the access.
import type { Access, Grant } from '../access.ts';
import type { Admission, Applicant } from './admission.ts';

type Authorized<G extends Grant> = {
  readonly access: Access<G>;
  readonly granted: G;
  readonly applicant: Applicant;
};

/** Of Node. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export class Held {
  readonly #cutting = new AbortController();
  readonly #ends: (() => void)[] = [];

  /** Aborts when the caller has lost the access. */
  get signal(): AbortSignal {
    return this.#cutting.signal;
  }

  /** From here on a key that is revoked ends it, as it ends a stream of the API. */
  until<G extends Grant>(streams: Admission['streams'], { access, granted, applicant }: Authorized<G>): void {
    const open = streams.add({
      ...{ access, granted, requestId: applicant.requestId },
      toEntry: (known) => ({
        ...{ head: applicant.head, client: applicant.client, requestId: applicant.requestId },
        ...{ peer: applicant.client.host ?? '', origin: undefined, onCaller: () => undefined, ...known },
      }),
      end: (reason) => this.#cutting.abort(reason),
    });
    this.onEnd(() => open[Symbol.dispose]());
  }

  /** For what ends at a known time, which nobody is notified of. */
  expireAfter(ms: number, reason: Error): void {
    const timer = setTimeout(() => this.#cutting.abort(reason), Math.min(ms, MAX_TIMEOUT_MS)).unref();
    this.onEnd(() => clearTimeout(timer));
  }

  onEnd(end: () => void): void {
    this.#ends.push(end);
  }

  end(): void {
    for (const end of this.#ends.splice(0)) end();
  }
}
