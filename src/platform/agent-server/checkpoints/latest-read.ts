// What an update of a state is based on: the checkpoints that it has read as the latest ones. A run may begin and end between that read
// and the write, and so may another update; this one would then hide what they have stored.

export class LatestRead {
  readonly #latest = new Map<string, string>();

  /** Undefined: the namespace has no checkpoint. What is read first counts. */
  read(namespace: string, id: string | undefined): void {
    if (!this.#latest.has(namespace)) this.#latest.set(namespace, id ?? '');
  }

  /** By the update itself. */
  written(namespace: string, id: string): void {
    const latest = this.#latest.get(namespace);
    if (latest !== undefined && id > latest) this.#latest.set(namespace, id);
  }

  /** JSON: of each namespace the checkpoint above which there must be none. */
  toJson(): string {
    return JSON.stringify([...this.#latest].map(([ns, id]) => ({ ns, id })));
  }
}
