// The deployments of one machine: taken, compared with what runs, and given up with the lease. It is woken by notifications and looks at the
// tables every few seconds, because a notification may be lost.
import { setTimeout as delay } from 'node:timers/promises';
import { describeBug } from '../../base/log.ts';
import { RUNNER_RENEWAL_MS, type Runner as RunnerRow, removeRunner } from '../deployments/runners.ts';
import { claimDeployments, readWanted, type WantedDeployment } from '../deployments/wanted-deployments.ts';
import { profileChannel } from '../proxy-profiles/contract.ts';
import type { Notifications } from '../store/postgres/notifications.ts';
import type { DeploymentGround } from './deployments/deployment-ground.ts';
import { forgetDeployment } from './deployments/deployment-removal.ts';
import { readPolicyVersions } from './deployments/deployment-policy.ts';
import { RunningDeployment } from './deployments/running-deployment.ts';
import { createRunnerLease, type RunnerLease } from './runner-lease.ts';
import { createUpkeep } from './upkeep.ts';

export type RunnerOptions = {
  readonly ground: DeploymentGround;
  readonly row: RunnerRow;
  readonly notifications: Pick<Notifications, 'subscribe'>;
  readonly intervalMs?: number;
};

export type Runner = {
  readonly deployments: number;
  readonly instances: number;
  /** Every deployment of this machine responds to requests that has a revision for them. */
  readonly isServing: boolean;
  /** Ends what runs, after what has begun is done or the signal aborts, and gives the deployments to other runners. */
  close(signal: AbortSignal): Promise<void>;
};

/** Of several notifications in a moment. */
const PAUSE_MS = 30;

export async function openRunner(options: RunnerOptions): Promise<Runner> {
  const runner = new RunningDeployments(options);
  await runner.begin();
  return runner;
}

class RunningDeployments implements Runner {
  readonly #options: RunnerOptions;
  readonly #ground: DeploymentGround;
  readonly #lease: RunnerLease;
  readonly #running = new Map<string, RunningDeployment>();
  /** That are no longer this runner's, and have not ended. */
  readonly #forgetting = new Set<string>();
  readonly #closing = new AbortController();
  readonly #upkeep: () => void;
  #versions: ReadonlyMap<string, string> = new Map();
  #unsubscribe: readonly (() => void)[] = [];
  #wake = Promise.withResolvers<void>();
  #loop: Promise<void> | undefined;
  #renewal: NodeJS.Timeout | undefined;
  #isAway = false;
  /** The deployments that have a revision for requests; undefined until they were read. */
  #expected: readonly string[] | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#ground = options.ground;
    this.#lease = createRunnerLease(options.ground.store.db, options.row);
    this.#upkeep = createUpkeep(options.ground, (id) => this.#running.has(id) || this.#forgetting.has(id));
  }

  get deployments(): number {
    return this.#running.size;
  }

  get instances(): number {
    return [...this.#running.values()].reduce((sum, one) => sum + one.instances, 0);
  }

  get isServing(): boolean {
    return this.#expected?.every((id) => (this.#running.get(id)?.instances ?? 0) > 0) === true;
  }

  async begin(): Promise<void> {
    await this.#lease.register();
    const wake = (): void => this.#wake.resolve();
    const subscriber = { onMessage: wake, onMissed: wake };
    const { notifications } = this.#options;
    this.#loop = this.#run();
    this.#keepLease();
    this.#unsubscribe = await Promise.all(
      (['deployments', profileChannel] as const).map((channel) =>
        notifications.subscribe(channel, subscriber),
      ),
    );
  }

  async close(signal: AbortSignal): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#renewal);
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#wake.resolve();
    await this.#loop;
    const all = [...this.#running.values()];
    const drained = Promise.all(all.map((one) => one.close('drain')));
    const expired = new Promise<'late'>((resolve) => {
      signal.addEventListener('abort', () => resolve('late'), { once: true });
      if (signal.aborted) resolve('late');
    });
    if ((await Promise.race([drained, expired])) === 'late')
      await Promise.all(all.map((one) => one.close('now')));
    await removeRunner(this.#ground.store.db, this.#options.row.id).catch(() => undefined);
  }

  /** By itself, whatever a pass waits for: what takes long must not cost this runner what it has. */
  #keepLease(): void {
    const renew = async (): Promise<void> => {
      const isThere = await this.#lease.renew().catch(() => this.#lease.isHeld);
      if (!isThere) this.#wake.resolve();
      if (!this.#closing.signal.aborted) this.#renewal = setTimeout(() => void renew(), RUNNER_RENEWAL_MS);
    };
    this.#renewal = setTimeout(() => void renew(), RUNNER_RENEWAL_MS);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const { intervalMs = RUNNER_RENEWAL_MS } = this.#options;
    while (!signal.aborted) {
      const timer = setTimeout(() => this.#wake.resolve(), intervalMs);
      await this.#pass();
      await delay(PAUSE_MS);
      await this.#wake.promise;
      clearTimeout(timer);
      this.#wake = Promise.withResolvers();
    }
  }

  /** Never rejects. */
  async #pass(): Promise<void> {
    try {
      if (!this.#lease.isHeld && !(await this.#lease.renew())) await this.#begin();
      const { db } = this.#ground.store;
      await claimDeployments(db, this.#options.row);
      this.#compare(await readWanted(db, this.#options.row.id));
      await this.#findChangedPolicies();
      this.#upkeep();
      if (this.#isAway) this.#ground.log.info('the deployments of this machine can be read again');
      this.#isAway = false;
    } catch (error) {
      const bug = describeBug(error);
      if (!this.#isAway) this.#ground.log.warn(bug, 'the deployments of this machine cannot be read');
      this.#isAway = true;
    }
    if (!this.#lease.isHeld) await this.#giveUp();
    const nowMs = performance.now();
    for (const one of this.#running.values()) one.look(nowMs);
  }

  /** The row is gone: somebody may have taken what this runner had. */
  async #begin(): Promise<void> {
    await this.#giveUp();
    await this.#lease.register();
  }

  async #giveUp(): Promise<void> {
    if (this.#running.size === 0) return;
    this.#ground.log.error('the lease of this runner is lost: it ends what it runs');
    const all = [...this.#running.values()];
    this.#running.clear();
    await Promise.all(all.map((one) => one.close('now')));
  }

  #compare(wanted: readonly WantedDeployment[]): void {
    const ids = new Set(wanted.map(({ id }) => id));
    this.#expected = wanted.filter((one) => one.active && !one.isDeleting).map(({ id }) => id);
    for (const one of wanted) {
      const known = this.#running.get(one.id);
      if (known === undefined) this.#running.set(one.id, new RunningDeployment(this.#ground, one));
      else known.update(one);
    }
    for (const [id, one] of this.#running)
      if (!ids.has(id)) {
        this.#running.delete(id);
        void this.#forget(id, one);
      }
  }

  /** Another runner has it, or it went with its workspace. Never rejects. */
  async #forget(id: string, one: RunningDeployment): Promise<void> {
    const { log } = this.#ground;
    this.#forgetting.add(id);
    try {
      await one.close('now');
      await forgetDeployment(this.#ground, id);
    } catch (error) {
      log.warn({ ...describeBug(error), deployment: id }, 'what is left of a deployment was not removed');
    } finally {
      this.#forgetting.delete(id);
    }
  }

  async #findChangedPolicies(): Promise<void> {
    const workspaceIds = [...new Set([...this.#running.values()].map(({ workspaceId }) => workspaceId))];
    const versions = await readPolicyVersions(this.#ground.store.db, workspaceIds);
    const before = this.#versions;
    this.#versions = versions;
    const changed = [...this.#running.values()].filter(
      // Also of one that was not known: it may have read its rules before this.
      ({ workspaceId }) => before.get(workspaceId) !== versions.get(workspaceId),
    );
    // Not waited for: a sidecar may not respond.
    for (const one of changed) void one.refreshPolicy();
  }
}
