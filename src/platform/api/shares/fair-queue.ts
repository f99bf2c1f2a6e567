// Who gets the next place where there are fewer places than requests. Each organization, and each key in it, has a share that
// it cannot exceed. Within the shares the places are free for whoever asks; where several wait, the one that holds the
// fewest comes first, and among equals the one that was served longest ago. Places do not divide the processors: where that
// matters, an organization has a smaller share while others are active. Pure but for its clock.
import { DomainError } from '../../../base/domain-error.ts';
import type { Clock } from './clock.ts';
import type { RecentOrganizations } from './recent-organizations.ts';

/** Who asks: a key, and the organization that it belongs to. */
export type Party = { readonly organization: string; readonly key: string };

export type QueueLimits = {
  readonly places: number;
  readonly perOrganization: number;
  readonly perKey: number;
  /** A smaller share while others are active; none when absent. */
  readonly contention?: Contention | undefined;
  /** How long a request waits for its places before it is rejected. */
  readonly waitMs: number;
  /** Requests of one organization that wait; the next one is rejected at once. */
  readonly maxWaiting: number;
};

/** Others are active that asked lately, or wait or hold places of the queue. */
export type Contention = { readonly perOrganization: number; readonly recent: RecentOrganizations };

/** Gives the places back; only the first call counts. */
export type Leave = () => void;

type Waiter = { readonly weight: number; start(leave: Leave): void };
type Key = { running: number; served: number; readonly waiting: Set<Waiter> };
type Tenant = {
  readonly organization: string;
  running: number;
  /** The number of its latest start. Who comes is behind those that have waited since before the latest start of all. */
  served: number;
  waiting: number;
  readonly keys: Map<string, Key>;
  /** The starts of what runs, the oldest first. */
  readonly starts: Set<{ readonly atMs: number }>;
  /** How long a request held its places of late. */
  heldMs: number;
};

/** How much the latest request counts in the mean. */
const WEIGHT_OF_LAST = 0.2;
const MAX_RETRY_MS = 60_000;

export class FairQueue {
  readonly #limits: QueueLimits;
  readonly #clock: Clock;
  readonly #rejection: string;
  readonly #kind: 'too_many' | 'unavailable';
  /** Those who wait or hold a place. */
  readonly #tenants = new Map<string, Tenant>();
  #running = 0;
  #served = 0;
  #waiting = 0;
  #isWakeSet = false;

  /** `rejection` is the text of the error for who found no place, `kind` its kind. */
  constructor(
    limits: QueueLimits,
    clock: Clock,
    rejection: string,
    kind: 'too_many' | 'unavailable' = 'too_many',
  ) {
    this.#limits = limits;
    this.#clock = clock;
    this.#rejection = rejection;
    this.#kind = kind;
  }

  /** Requests that wait for their places. */
  get waiting(): number {
    return this.#waiting;
  }

  async run<T>(party: Party, work: () => Promise<T>): Promise<T> {
    const leave = await this.enter(party);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Takes `weight` places, at most those of the smallest share; throws DomainError when they do not come in time. */
  async enter(party: Party, weight = 1): Promise<Leave> {
    const { contention, perKey } = this.#limits;
    contention?.recent.note(party.organization);
    const wanted = Math.min(weight, perKey, contention?.perOrganization ?? perKey);
    const tenant = this.#tenantOf(party);
    const key = this.#keyOf(tenant, party);
    if (this.#waiting === 0 && this.#fits(tenant, key, wanted) && this.#isFree(wanted))
      return this.#take(party, wanted);
    if (this.#limits.waitMs > 0 && tenant.waiting < this.#limits.maxWaiting) return this.#wait(party, wanted);
    const rejection = this.#reject(tenant);
    this.#forget(party);
    throw rejection;
  }

  #wait(party: Party, weight: number): Promise<Leave> {
    const { promise, resolve, reject } = Promise.withResolvers<Leave>();
    const tenant = this.#tenantOf(party);
    const { waiting } = this.#keyOf(tenant, party);
    const remove = (): void => {
      waiting.delete(waiter);
      tenant.waiting -= 1;
      this.#waiting -= 1;
    };
    const cancel = this.#clock.after(this.#limits.waitMs, () => {
      const rejection = this.#reject(tenant);
      remove();
      this.#forget(party);
      reject(rejection);
      // It may have been in the way of a smaller one.
      this.#serve();
    });
    const waiter: Waiter = {
      weight,
      start(leave) {
        cancel();
        remove();
        resolve(leave);
      },
    };
    waiting.add(waiter);
    tenant.waiting += 1;
    this.#waiting += 1;
    this.#serve();
    return promise;
  }

  /** Starts what waits, as far as there are places. */
  #serve(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { party, waiter } = next;
      // What fits its shares is waited for: smaller requests must not overtake it for ever.
      if (!this.#isFree(waiter.weight)) break;
      waiter.start(this.#take(party, waiter.weight));
    }
    this.#wakeWhenAlone();
  }

  /** Nobody enters or leaves at the moment when an organization is alone again, and may have more places. */
  #wakeWhenAlone(): void {
    const inMs = this.#waiting === 0 ? 0 : (this.#limits.contention?.recent.changesInMs() ?? 0);
    if (inMs === 0 || this.#isWakeSet) return;
    this.#isWakeSet = true;
    this.#clock.after(inMs, () => {
      this.#isWakeSet = false;
      this.#serve();
    });
  }

  /** Of what fits its shares: the first request of who holds the fewest places. */
  #next(): { readonly party: Party; readonly waiter: Waiter } | undefined {
    if (this.#waiting === 0) return undefined;
    let best: { readonly party: Party; readonly waiter: Waiter; readonly tenant: Tenant } | undefined;
    for (const [organization, tenant] of this.#tenants) {
      if (tenant.waiting === 0 || (best !== undefined && !precedes(tenant, best.tenant))) continue;
      const found = this.#nextOf(tenant);
      if (found !== undefined)
        best = { party: { organization, key: found.name }, waiter: found.waiter, tenant };
    }
    return best;
  }

  #nextOf(tenant: Tenant): { readonly name: string; readonly waiter: Waiter } | undefined {
    let best: { readonly name: string; readonly waiter: Waiter; readonly key: Key } | undefined;
    for (const [name, key] of tenant.keys) {
      const [waiter] = key.waiting;
      if (waiter === undefined || (best !== undefined && !precedes(key, best.key))) continue;
      if (this.#fits(tenant, key, waiter.weight)) best = { name, waiter, key };
    }
    return best;
  }

  #fits(tenant: Tenant, key: Key, weight: number): boolean {
    return tenant.running + weight <= this.#shareOf(tenant) && key.running + weight <= this.#limits.perKey;
  }

  #shareOf({ organization }: Tenant): number {
    const { perOrganization, contention } = this.#limits;
    if (contention === undefined) return perOrganization;
    // It is among those that wait or hold a place itself.
    const isAlone = this.#tenants.size <= 1 && !contention.recent.hasOtherThan(organization);
    return isAlone ? perOrganization : Math.min(contention.perOrganization, perOrganization);
  }

  #isFree(weight: number): boolean {
    return this.#running + weight <= this.#limits.places;
  }

  #take(party: Party, weight: number): Leave {
    const tenant = this.#tenantOf(party);
    const key = this.#keyOf(tenant, party);
    const start = { atMs: this.#clock.now() };
    tenant.starts.add(start);
    const count = (places: number): void => {
      this.#running += places;
      tenant.running += places;
      key.running += places;
    };
    count(weight);
    tenant.served = key.served = this.#served += 1;
    return () => {
      if (!tenant.starts.delete(start)) return;
      const held = this.#clock.now() - start.atMs;
      tenant.heldMs += WEIGHT_OF_LAST * (held - tenant.heldMs);
      count(-weight);
      this.#limits.contention?.recent.note(party.organization);
      this.#forget(party);
      this.#serve();
    };
  }

  /** By then the requests before it have ended, when they take as long as those of late. */
  #reject(tenant: Tenant): DomainError {
    const [oldest = { atMs: this.#clock.now() }] = tenant.starts;
    const heldMs = Math.max(tenant.heldMs, this.#clock.now() - oldest.atMs);
    // Of those that run, more may have started than will run at the same time from now on.
    const atOnce = Math.min(tenant.starts.size, this.#shareOf(tenant));
    const retryMs = ((tenant.waiting + 1) * heldMs) / Math.max(1, atOnce);
    return new DomainError(this.#kind, this.#rejection, Math.min(Math.max(1, retryMs), MAX_RETRY_MS));
  }

  #tenantOf({ organization }: Party): Tenant {
    const known = this.#tenants.get(organization);
    if (known !== undefined) return known;
    const counts = { running: 0, served: this.#arrival, waiting: 0, heldMs: 0 };
    const tenant: Tenant = { organization, ...counts, keys: new Map(), starts: new Set() };
    this.#tenants.set(organization, tenant);
    return tenant;
  }

  #keyOf(tenant: Tenant, { key: name }: Party): Key {
    const known = tenant.keys.get(name);
    if (known !== undefined) return known;
    const key: Key = { running: 0, served: this.#arrival, waiting: new Set() };
    tenant.keys.set(name, key);
    return key;
  }

  /**
   * Before who was served last, and behind all others that wait. A number below all others would let callers that are never
   * seen twice, such as the addresses of one large network, come before who always waits, for ever.
   */
  get #arrival(): number {
    return this.#served - 0.5;
  }

  /** Who neither waits nor holds a place is not remembered. */
  #forget({ organization, key: name }: Party): void {
    const tenant = this.#tenants.get(organization);
    const key = tenant?.keys.get(name);
    if (tenant === undefined || key === undefined) return;
    if (key.running === 0 && key.waiting.size === 0) tenant.keys.delete(name);
    if (tenant.keys.size === 0) this.#tenants.delete(organization);
  }
}

type Turn = Pick<Key, 'running' | 'served'>;

function precedes(one: Turn, other: Turn): boolean {
  return one.running === other.running ? one.served < other.served : one.running < other.running;
}
