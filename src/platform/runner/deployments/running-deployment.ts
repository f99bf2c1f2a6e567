// One deployment on this machine, from the rows that say what should run to the agent servers that do: its database, the revision that
// serves, the switch to the next one, and its end. One step at a time; what a step could not do is tried again.
import { DomainError } from '../../../base/domain-error.ts';
import { describeBug } from '../../../base/log.ts';
import { noteReason } from '../../deployments/deployment-databases.ts';
import type { WantedDeployment, WantedRevision } from '../../deployments/wanted-deployments.ts';
import type { ServedDeployment } from '../../deployment-gateway/target-table.ts';
import { type OpenDatabase, openDeploymentDatabase } from '../databases/deployment-database.ts';
import { createScale } from '../fleet/scale.ts';
import type { AgentSpec } from '../instances/agent-process.ts';
import type { DeploymentGround } from './deployment-ground.ts';
import { removeDeployment } from './deployment-removal.ts';
import { openRevisionFleet, type RevisionFleet } from './revision-fleet.ts';
import { switchRevision } from './revision-switch.ts';
import { DeploymentTraces } from '../traces/deployment-traces.ts';
import { PolicyRefresh } from './policy-refresh.ts';
import { RunningPolicy } from './running-policy.ts';

const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 30_000;
const LOOK_MS = 4_000;

export class RunningDeployment {
  readonly #ground: DeploymentGround;
  readonly #closing = new AbortController();
  readonly #policy: RunningPolicy;
  readonly #refresh: PolicyRefresh;
  readonly #traces: DeploymentTraces;
  readonly #retiring = new Set<RevisionFleet>();
  #scale = createScale();
  #wanted: WantedDeployment;
  #database: OpenDatabase | undefined;
  #user: AgentSpec['user'];
  #current: RevisionFleet | undefined;
  #switching: { readonly revisionId: string; readonly abort: AbortController } | undefined;
  /** It ended in a state that never changes: what was read before may still name it. */
  #concluded: string | undefined;
  #reason: string | null | undefined;
  #isRemoved = false;
  #running: Promise<void> | undefined;
  #isWoken = false;
  #retryMs = FIRST_RETRY_MS;
  #nextMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(ground: DeploymentGround, wanted: WantedDeployment) {
    this.#ground = ground;
    this.#wanted = wanted;
    this.#policy = new RunningPolicy({ vault: ground.vault, db: ground.store.db });
    this.#refresh = this.#createRefresh();
    this.#traces = new DeploymentTraces({
      ...{ db: ground.store.db, platformUrl: ground.platformUrl, log: ground.log },
      owner: { workspaceId: wanted.workspaceId, deploymentId: wanted.id },
    });
    this.#turn();
    this.#wake();
  }

  get workspaceId(): string {
    return this.#wanted.workspaceId;
  }

  /** That may serve. */
  get instances(): number {
    return this.#current?.fleet.served.length ?? 0;
  }

  /** What should run now, as its rows say. */
  update(wanted: WantedDeployment): void {
    const before = this.#wanted;
    this.#wanted = wanted;
    const next = wanted.next?.revisionId ?? wanted.active?.revisionId;
    if (wanted.isDeleting || this.#switching?.revisionId !== next)
      this.#switching?.abort.abort(new Error('a newer revision came, or the deployment is deleted'));
    if (before.proxyProfileId !== wanted.proxyProfileId) void this.refreshPolicy();
    // What waits or failed is tried again after a while, however often it is read.
    if (JSON.stringify(before) !== JSON.stringify(wanted) || performance.now() >= this.#nextMs) this.#wake();
  }

  /** A profile or a secret of its workspace was changed. Never rejects. */
  refreshPolicy(): Promise<void> {
    return this.#refresh.request();
  }

  #createRefresh(): PolicyRefresh {
    const say = (level: 'INFO' | 'ERROR', message: string): void =>
      this.#current?.log.add({ level, message: `changed rules of the proxy are ${message}` });
    return new PolicyRefresh({
      isRunning: () => this.#current !== undefined && !this.#closing.signal.aborted,
      read: () => this.#policy.read(this.#wanted),
      apply: async () => {
        const { current } = this.#policy;
        const fleets = [this.#current, ...this.#retiring].filter((one) => one !== undefined);
        await Promise.all(fleets.map(({ fleet }) => fleet.applyPolicy(current)));
      },
      onApplied: () => {
        say('INFO', 'in effect');
        this.#logProblems(this.#current);
      },
      onFailed: (message) => say('ERROR', `not in effect, and are tried again: ${message}`),
    });
  }

  /** Looks at what is in flight, and adds or removes agent servers. */
  look(nowMs: number): void {
    this.#refresh.look();
    if (this.#current === undefined || this.#closing.signal.aborted || this.#wanted.isDeleting) return;
    const { fleet, revision } = this.#current;
    const range = { min: revision.minScale, max: revision.maxScale };
    const count = this.#scale.look(fleet.inFlight, range, nowMs);
    const problem = fleet.scaleTo(count);
    // More than the smallest number is a matter of this machine.
    if (fleet.size < range.min) void this.#note(problem ?? null);
    else if (this.#switching === undefined && this.#wanted.next === undefined) void this.#note(null);
  }

  /** Ends what runs, at once or after what has begun is done. Nothing of the deployment itself is removed. */
  async close(how: 'drain' | 'now'): Promise<void> {
    this.#closing.abort(new Error('this runner ends, or another one has the deployment'));
    clearTimeout(this.#timer);
    this.#switching?.abort.abort(this.#closing.signal.reason);
    await this.#running;
    const { targets } = this.#ground.gateway;
    // Until another process serves it, clients are to try again.
    targets.turn(this.#served, undefined);
    await this.#endFleets(how);
    targets.remove(this.#wanted.id);
    await this.#database?.bridge.close();
  }

  async #endFleets(how: 'drain' | 'now'): Promise<void> {
    const fleets = [...this.#retiring, ...(this.#current === undefined ? [] : [this.#current])];
    this.#current = undefined;
    await Promise.all(
      fleets.map(async ({ fleet, log }) => {
        if (how === 'drain') await fleet.retire();
        await fleet.close(GRACE_MS);
        log.close();
      }),
    );
  }

  #wake(): void {
    this.#isWoken = true;
    if (this.#closing.signal.aborted || this.#isRemoved) return;
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
  }

  async #run(): Promise<void> {
    while (this.#isWoken && !this.#closing.signal.aborted && !this.#isRemoved) {
      this.#isWoken = false;
      clearTimeout(this.#timer);
      try {
        await this.#step();
        this.#retryMs = FIRST_RETRY_MS;
        this.#nextMs = performance.now() + LOOK_MS;
      } catch (error) {
        await this.#onFailure(error);
      }
    }
  }

  async #onFailure(error: unknown): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const isAway = error instanceof DomainError && error.kind === 'unavailable';
    if (!isAway) await this.#note(error instanceof Error ? error.message : 'it cannot be run');
    const { log } = this.#ground;
    log.warn({ ...describeBug(error), deployment: this.#wanted.id }, 'a deployment is tried again');
    this.#nextMs = performance.now() + this.#retryMs;
    this.#timer = setTimeout(() => this.#wake(), this.#retryMs).unref();
    this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS);
  }

  async #step(): Promise<void> {
    const wanted = this.#wanted;
    if (wanted.isDeleting) return this.#remove();
    const isMade = wanted.status === 'READY';
    if (this.#database === undefined) {
      this.#user = await this.#ground.agents.workloads.userOf(wanted.id);
      const given = { isMade, groupId: this.#user?.gid };
      const owner = { workspaceId: wanted.workspaceId, deploymentId: wanted.id };
      this.#database = await openDeploymentDatabase(this.#ground.databases, owner, given);
      if (this.#database === undefined) return;
    }
    const failure = await this.#beginActive(wanted);
    const next = wanted.next ?? (failure === undefined ? wanted.active : undefined);
    const isThere = next === undefined || next.revisionId === this.#current?.revision.revisionId;
    if (!isThere && next.revisionId !== this.#concluded) await this.#switch(next);
    if (this.#current === undefined && failure !== undefined) throw failure;
  }

  /** Returns why it cannot be started: its successor, which may be the cure, does not wait for it. */
  async #beginActive({ active }: WantedDeployment): Promise<Error | undefined> {
    if (active === undefined || this.#current !== undefined) return undefined;
    try {
      await this.#begin(active);
    } catch (error) {
      if (error instanceof DomainError && error.kind === 'unavailable') throw error;
      return error instanceof Error ? error : new Error('it cannot be run', { cause: error });
    }
    return undefined;
  }

  /** The revision that served when an earlier process ended. It is not waited for: a newer one may follow at once. */
  async #begin(revision: WantedRevision): Promise<void> {
    await this.#policy.read(this.#wanted);
    this.#current = await this.#open(revision, false);
    this.#turn();
    this.look(performance.now());
  }

  async #open(revision: WantedRevision, isSwitch: boolean): Promise<RevisionFleet> {
    await this.#traces.open();
    const { id, name, workspaceId } = this.#wanted;
    if (this.#database === undefined) throw new Error('the database of a deployment is not open');
    const onChange = (): void => {
      if (this.#current?.revision.revisionId === revision.revisionId) this.#turn();
    };
    const opened = await openRevisionFleet(this.#ground, revision, {
      ...{ wanted: { id, name, workspaceId }, database: this.#database, user: this.#user },
      ...{ policy: () => this.#policy.current, traces: this.#traces, onChange, isSwitch },
    });
    if (this.#traces.note !== undefined) opened.log.add({ level: 'INFO', message: this.#traces.note });
    this.#logProblems(opened);
    return opened;
  }

  #logProblems(fleet: RevisionFleet | undefined): void {
    for (const message of this.#policy.problems) fleet?.log.add({ level: 'WARNING', message });
  }

  async #switch(revision: WantedRevision): Promise<void> {
    const abort = new AbortController();
    let version = 0;
    this.#switching = { revisionId: revision.revisionId, abort };
    try {
      const outcome = await switchRevision({
        ...{ ground: this.#ground, revision, signal: abort.signal },
        open: async () => {
          await this.#policy.read(this.#wanted);
          ({ version } = this.#policy);
          return this.#open(revision, this.#current !== undefined);
        },
        onDeployed: (fleet) => {
          this.#follow(fleet);
          // Those that were ready first may have older rules than those that were ready last.
          if (this.#policy.version !== version) void this.#refresh.requestAgain();
        },
      });
      if (outcome.kind === 'no capacity') await this.#note(outcome.reason);
      else this.#concluded = revision.revisionId;
    } finally {
      this.#switching = undefined;
    }
  }

  /** The gateway turns in one step; the old agent servers end by themselves. */
  #follow(next: RevisionFleet): void {
    const before = this.#current;
    this.#current = next;
    this.#scale = createScale();
    this.#turn();
    if (before === undefined) return;
    this.#retiring.add(before);
    void before.fleet.retire().then(() => {
      before.log.close();
      this.#retiring.delete(before);
    });
  }

  get #served(): ServedDeployment {
    const { id, name, workspaceId, organizationId } = this.#wanted;
    return { id, name, workspaceId, organizationId };
  }

  #turn(): void {
    if (this.#closing.signal.aborted) return;
    this.#ground.gateway.targets.turn(this.#served, this.#current?.served());
  }

  async #remove(): Promise<void> {
    const { id } = this.#wanted;
    this.#ground.gateway.targets.remove(id);
    await this.#endFleets('now');
    await this.#database?.bridge.close();
    this.#database = undefined;
    await removeDeployment(this.#ground, id);
    this.#isRemoved = true;
  }

  /** Never rejects: it is only shown. */
  async #note(reason: string | null): Promise<void> {
    if (reason === this.#reason) return;
    this.#reason = reason;
    await noteReason(this.#ground.store.db, this.#wanted.id, reason).catch(() => (this.#reason = undefined));
  }
}

/** For agent servers that are not drained. */
const GRACE_MS = 3_000;
