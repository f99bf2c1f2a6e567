// One place of a revision: an agent server that is started again whenever it ends or does not respond, until the place is given up.
import { setTimeout as delay } from 'node:timers/promises';
import type { AgentProcess } from './agent-process.ts';
import { createRestartPolicy, HEALTH_INTERVAL_MS } from './restart-policy.ts';

export type InstanceOptions = {
  /** Rejects with an Error whose message is for the owner of the deployment. */
  start(signal: AbortSignal): Promise<AgentProcess>;
  /** `ready` changed. */
  onChange(): void;
  /** It ended, or was ended, or could not be started. */
  onRestart(reason: string, pauseMs: number): void;
  readonly healthMs?: number;
  readonly now?: () => number;
};

const UNHEALTHY = 'it did not respond to three health checks';

export class Instance {
  readonly #options: InstanceOptions;
  readonly #closing = new AbortController();
  readonly #first = Promise.withResolvers<string | undefined>();
  readonly #running: Promise<void>;
  #process: AgentProcess | undefined;
  #isTaken = false;

  constructor(options: InstanceOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** The agent server that may serve now. */
  get ready(): AgentProcess | undefined {
    return this.#process;
  }

  /** What became of the first start: the reason why it failed, or undefined when it was ready. */
  get first(): Promise<string | undefined> {
    return this.#first.promise;
  }

  /** Gives up the place, and leaves the agent server that runs to the caller. */
  async take(): Promise<AgentProcess | undefined> {
    this.#isTaken = true;
    const taken = this.#process;
    await this.close(0);
    return taken;
  }

  /** Gives up the place. Resolves when nothing of it runs. */
  async close(graceMs: number): Promise<void> {
    this.#closing.abort(new Error('the agent server is not wanted any more'));
    const process = this.#process;
    this.#process = undefined;
    if (!this.#isTaken) await process?.stop(graceMs);
    await this.#running;
  }

  async #run(): Promise<void> {
    const { onChange, onRestart, now = () => performance.now() } = this.#options;
    const { signal } = this.#closing;
    const policy = createRestartPolicy();
    while (!signal.aborted) {
      let reason: string;
      try {
        const process = await this.#options.start(signal);
        // The place was given up at the moment at which it became ready.
        if (signal.aborted) {
          await process.stop(0);
          break;
        }
        policy.began(now());
        this.#process = process;
        this.#first.resolve(undefined);
        onChange();
        reason = await this.#watch(process, policy);
      } catch (error) {
        reason = error instanceof Error ? error.message : String(error);
      }
      if (signal.aborted) break;
      const pauseMs = policy.ended(now());
      this.#first.resolve(reason);
      onRestart(reason, pauseMs);
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
    this.#first.resolve('it is not wanted any more');
  }

  /** Resolves with the reason when it serves no more: nothing of it runs then, unless the place was given up. */
  async #watch(process: AgentProcess, policy: ReturnType<typeof createRestartPolicy>): Promise<string> {
    const { signal } = this.#closing;
    const { onChange, healthMs = HEALTH_INTERVAL_MS } = this.#options;
    const closed = new Promise<string>((resolve) => {
      signal.addEventListener('abort', () => resolve('closed'), { once: true });
      if (signal.aborted) resolve('closed');
    });
    const over = Promise.race([process.ended, closed]);
    for (;;) {
      const ended = await Promise.race([over, delay(healthMs, undefined, { ref: false })]);
      if (ended !== undefined) {
        this.#forget(process, onChange);
        return ended;
      }
      const isHealthy = process.control.isReady().catch(() => false);
      if (!policy.checked(await isHealthy) || signal.aborted) continue;
      // No request is sent to it from now on.
      this.#forget(process, onChange);
      await process.stop(0);
      return UNHEALTHY;
    }
  }

  #forget(process: AgentProcess, onChange: () => void): void {
    if (this.#process !== process || this.#closing.signal.aborted) return;
    this.#process = undefined;
    onChange();
  }
}
