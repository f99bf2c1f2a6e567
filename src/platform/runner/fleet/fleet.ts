// The agent servers of one revision: as many as are wanted, each started again by itself, and those among them that may serve.
import type { ServedInstance, TargetTable } from '../../deployment-gateway/target-table.ts';
import type { AgentProcess, WorkloadPolicy } from '../instances/agent-process.ts';
import { Instance } from '../instances/instance.ts';
import type { Taken } from './capacity.ts';
import { retire } from './retirement.ts';

export type FleetOptions = {
  start(signal: AbortSignal): Promise<AgentProcess>;
  /** For one more. A string says why there cannot be one. */
  take(): Taken | string;
  /** Of those that may serve. */
  onChange(): void;
  onRestart(reason: string, pauseMs: number): void;
  readonly targets: Pick<TargetTable, 'handedOver' | 'drained' | 'inFlight'>;
  readonly healthMs?: number;
  readonly drainMs?: number | undefined;
};

type Place = { readonly instance: Instance; readonly taken: Taken };

export class Fleet {
  readonly #options: FleetOptions;
  #places: readonly Place[] = [];
  /** That end, and still run. */
  readonly #ending = new Set<Promise<void>>();
  readonly #givingUp = new AbortController();

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#places.length;
  }

  get served(): readonly ServedInstance[] {
    return this.#ready.map(({ served }) => served);
  }

  /** In flight, of each that may serve. */
  get inFlight(): readonly number[] {
    const { targets } = this.#options;
    return this.#ready.map(({ served }) => targets.inFlight(served.id)?.requests ?? 0);
  }

  get #ready(): readonly AgentProcess[] {
    return this.#places.flatMap(({ instance }) => (instance.ready === undefined ? [] : [instance.ready]));
  }

  /** Returns why there cannot be as many; undefined: there are. */
  scaleTo(count: number): string | undefined {
    while (this.#places.length > count) this.#removeLast();
    while (this.#places.length < count) {
      const taken = this.#options.take();
      if (typeof taken === 'string') return taken;
      const { start, onChange, onRestart, healthMs } = this.#options;
      const instance = new Instance({ start, onChange, onRestart, ...(healthMs && { healthMs }) });
      this.#places = [...this.#places, { instance, taken }];
    }
    return undefined;
  }

  /** When each has been ready once; otherwise the reason of the first that was not. */
  async whenReady(): Promise<string | undefined> {
    const all = this.#places.map(({ instance }) => instance.first);
    const failed = all.map(async (first) => (await first) ?? new Promise<never>(() => undefined));
    return Promise.race([
      Promise.all(all).then((reasons) => reasons.find((one) => one !== undefined)),
      ...failed,
    ]);
  }

  /** Each that runs; one that starts meanwhile gets the policy of its start. Rejects with the first error. */
  async applyPolicy(policy: WorkloadPolicy): Promise<void> {
    await Promise.all(this.#ready.map(({ workload }) => workload.applyPolicy(policy)));
  }

  /** The gateway has turned away from all of them: each ends when what it has begun is done. Resolves when nothing of them runs. */
  async retire(): Promise<void> {
    while (this.#places.length > 0) this.#removeLast();
    await Promise.all(this.#ending);
  }

  /** Ends all of them now, those that retire included. */
  async close(graceMs: number): Promise<void> {
    this.#givingUp.abort();
    const places = this.#places;
    this.#places = [];
    await Promise.all([
      ...places.map(async ({ instance, taken }) => {
        await instance.close(graceMs);
        taken.release();
      }),
      ...this.#ending,
    ]);
  }

  #removeLast(): void {
    const last = this.#places.at(-1);
    if (last === undefined) return;
    this.#places = this.#places.slice(0, -1);
    const ending = this.#end(last).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  async #end({ instance, taken }: Place): Promise<void> {
    const isServing = instance.ready !== undefined;
    const taking = instance.take();
    // The gateway turns away first.
    if (isServing) this.#options.onChange();
    const agent = await taking;
    const { targets, drainMs } = this.#options;
    if (agent !== undefined)
      await retire(agent, {
        targets,
        signal: this.#givingUp.signal,
        ...(drainMs !== undefined && { drainMs }),
      });
    taken.release();
  }
}
