// Where the requests to deployments go: which instances of which revision serve each deployment now, and what of them is in flight.
// It lives in memory, and its owner keeps it true; a change is one step, between two requests.
import type { AgentInput } from '../agent-server/contract.ts';
import type { Cors } from '../api/contract/cors.ts';
import { hostLabel } from '../deployments/gateway-address.ts';
import { InstanceLoad } from './instance-load.ts';

export type ServedDeployment = {
  readonly id: string;
  readonly name: string;
  readonly workspaceId: string;
  readonly organizationId: string;
};

export type ServedRevision = {
  readonly id: string;
  readonly access: AgentInput['deployment']['access'];
  /** Which pages may call it, as far as that is known without its code; undefined: all. */
  readonly cors?: Cors | undefined;
  /** Those that are ready. */
  readonly instances: readonly ServedInstance[];
};

export type ServedInstance = {
  /** Never used again. */
  readonly id: string;
  /** Pinned: code of the deployment cannot replace what is there. */
  readonly socketPath: string;
  /** That of all instances of its revision in one runner: a request may be sent to another one instead. */
  readonly gatewayToken: string;
};

export type InFlight = {
  readonly requests: number;
  /** Of them, connections of WebSockets. */
  readonly upgraded: number;
};

export type TargetTable = {
  /**
   * From now on requests to the deployment go to these instances, and to no other. Without instances they get 503, and without a
   * revision, which would say who decides about callers, those without a key of the platform 401.
   */
  turn(deployment: ServedDeployment, revision: ServedRevision | undefined): void;
  /** Requests get what one for an unknown deployment gets. */
  remove(deploymentId: string): void;
  /** Undefined: it is unknown, or its last request has ended since it was left out. */
  inFlight(instanceId: string): InFlight | undefined;
  /** After the turn away from an instance: each request that was on its way has reached it, and none follows. It may be drained then. */
  handedOver(instanceId: string): Promise<void>;
  /**
   * After the turn away from an instance: clients of its WebSockets are asked to connect again (1001), and the promise resolves when
   * nothing of it is in flight. The signal ends the waiting alone.
   */
  drained(instanceId: string, signal?: AbortSignal): Promise<void>;
};

/** One request, from the moment at which its instance was chosen. */
export type Taken = {
  readonly instance: ServedInstance;
  readonly revision: Pick<ServedRevision, 'id' | 'access'>;
  /** It is connected to the instance. */
  sent(): void;
  /** The instance refuses connections: for a moment others are chosen, if there are any. */
  refused(): void;
  /** The request has ended. */
  release(): void;
};

/** As the gateway uses it. */
export class Targets implements TargetTable {
  readonly #deployments = new Map<string, Served>();
  readonly #labels = new Map<string, Set<string>>();
  readonly #instances = new Map<string, InstanceLoad>();

  turn(deployment: ServedDeployment, revision: ServedRevision | undefined): void {
    const left = this.#takeOut(deployment.id);
    this.#deployments.set(deployment.id, { deployment, revision });
    const label = hostLabel(deployment);
    this.#labels.set(label, (this.#labels.get(label) ?? new Set()).add(deployment.id));
    for (const { id } of revision?.instances ?? []) {
      const load = this.#instances.get(id) ?? new InstanceLoad();
      load.isServing = true;
      this.#instances.set(id, load);
    }
    this.#forgetUnused(left);
  }

  remove(deploymentId: string): void {
    this.#forgetUnused(this.#takeOut(deploymentId));
  }

  find(deploymentId: string): Served | undefined {
    return this.#deployments.get(deploymentId);
  }

  /** Undefined also where two deployments have that host name. */
  findByLabel(label: string): Served | undefined {
    const [id, another] = this.#labels.get(label) ?? [];
    return id === undefined || another !== undefined ? undefined : this.find(id);
  }

  /** One of the instances that serve the deployment now. `onLeave`: of a WebSocket, whose client is to connect again. */
  take(deploymentId: string, onLeave?: () => void): Taken | undefined {
    return this.#takeOf(deploymentId, onLeave, () => true);
  }

  /**
   * Another one, in place of those that refuse connections, for a request of which nothing was sent. It was made for its revision and
   * has its token: undefined where no other instance takes both.
   */
  takeInstead(
    deploymentId: string,
    { instance, revision }: Taken,
    tried: ReadonlySet<string>,
    onLeave?: () => void,
  ): Taken | undefined {
    if (this.#deployments.get(deploymentId)?.revision?.id !== revision.id) return undefined;
    return this.#takeOf(
      deploymentId,
      onLeave,
      (one) => !tried.has(one.id) && one.gatewayToken === instance.gatewayToken,
    );
  }

  #takeOf(
    deploymentId: string,
    onLeave: (() => void) | undefined,
    isWanted: (instance: ServedInstance) => boolean,
  ): Taken | undefined {
    const revision = this.#deployments.get(deploymentId)?.revision;
    const nowMs = performance.now();
    let chosen: { readonly instance: ServedInstance; readonly load: InstanceLoad } | undefined;
    for (const instance of revision?.instances ?? []) {
      if (!isWanted(instance)) continue;
      const load = this.#loadOf(instance.id);
      if (chosen === undefined || load.isBefore(chosen.load, nowMs)) chosen = { instance, load };
    }
    if (chosen === undefined || revision === undefined) return undefined;
    return this.#begin({ ...chosen, revision, onLeave });
  }

  inFlight(instanceId: string): InFlight | undefined {
    const load = this.#instances.get(instanceId);
    return load && { requests: load.requests, upgraded: load.upgraded };
  }

  async handedOver(instanceId: string): Promise<void> {
    await this.#instances.get(instanceId)?.whenSent();
  }

  async drained(instanceId: string, signal?: AbortSignal): Promise<void> {
    const load = this.#instances.get(instanceId);
    if (load === undefined) return;
    if (load.isServing) throw new Error('an instance that requests go to was to be drained');
    load.leave();
    await load.whenEmpty(signal);
  }

  #begin({ instance, load, revision, onLeave }: Chosen): Taken {
    load.begin(onLeave);
    const sent = once(() => load.sent());
    const release = once(() => {
      sent();
      load.end(onLeave);
      this.#forgetUnused([instance.id]);
    });
    return { instance, revision, sent, release, refused: () => load.refused(performance.now()) };
  }

  #loadOf(instanceId: string): InstanceLoad {
    const load = this.#instances.get(instanceId);
    if (load === undefined) throw new Error('an instance that serves is not counted');
    return load;
  }

  /** The ids of the instances that served it. */
  #takeOut(deploymentId: string): readonly string[] {
    const before = this.#deployments.get(deploymentId);
    if (before === undefined) return [];
    this.#deployments.delete(deploymentId);
    const label = hostLabel(before.deployment);
    const named = this.#labels.get(label);
    named?.delete(deploymentId);
    if (named?.size === 0) this.#labels.delete(label);
    const ids = (before.revision?.instances ?? []).map(({ id }) => id);
    for (const id of ids) this.#loadOf(id).isServing = false;
    return ids;
  }

  #forgetUnused(ids: readonly string[]): void {
    for (const id of ids) if (this.#instances.get(id)?.isUnused === true) this.#instances.delete(id);
  }
}

export type Served = {
  readonly deployment: ServedDeployment;
  readonly revision: ServedRevision | undefined;
};

type Chosen = Pick<Taken, 'instance' | 'revision'> & {
  readonly load: InstanceLoad;
  readonly onLeave: (() => void) | undefined;
};

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}
