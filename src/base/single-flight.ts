// Concurrent calls for the same key share one run of the work and its outcome. Nothing is cached: once the work has
// settled, the next call starts it again.

export class SingleFlight<V> {
  readonly #flights: Map<string, Promise<V>> = new Map();

  /** Joins the work under way for `key`, or starts it. A rejection reaches everyone who shares the flight. */
  run(key: string, work: () => Promise<V>): Promise<V> {
    const underway = this.#flights.get(key);
    if (underway !== undefined) return underway;
    const flight = Promise.try(work).finally(() => this.#flights.delete(key));
    this.#flights.set(key, flight);
    return flight;
  }

  /** Keys under way. */
  get size(): number {
    return this.#flights.size;
  }
}
