// The signal of a client that leaves before its response was written.
import { RequestError } from './request-body.ts';

/** Made when it is asked for: most requests end before anybody does, and a signal costs more than a head. */
export class LeftSignal {
  #controller: AbortController | undefined;
  #hasLeft = false;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#hasLeft) this.abort();
    return this.#controller.signal;
  }

  abort(): void {
    this.#hasLeft = true;
    this.#controller?.abort(new RequestError('client_gone'));
  }
}
