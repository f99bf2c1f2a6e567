// A promise that is created only if somebody waits for it: most connections of tunnels end without that.
export class LeftSignal {
  #hasSettled = false;
  #waiting: PromiseWithResolvers<void> | undefined;

  get promise(): Promise<void> {
    if (this.#hasSettled) return Promise.resolve();
    this.#waiting ??= Promise.withResolvers();
    return this.#waiting.promise;
  }

  settle(): void {
    this.#hasSettled = true;
    this.#waiting?.resolve();
  }
}
