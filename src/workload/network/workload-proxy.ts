// One sandbox for a workload, and the policy that is in effect there. Its sidecar may end by itself: the listener is kept here, and the
// sandbox is made again.
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../base/log.ts';
import { WorkQueue } from '../../base/work-queue.ts';
import { type BoxAuthority, bundleOf } from '../../box-host/box-authorities.ts';
import type { PolicyDocument } from '../../box-host/box-document.ts';
import type { Placement } from '../../box-host/box-store.ts';
import type { BoxListen } from '../../box-host/engine.ts';
import { BoxProxy } from '../../box-host/sidecars/box-proxy.ts';
import type { SidecarProcess } from '../../box-host/sidecars/sidecar-process.ts';
import type { Sidecars } from '../../box-host/sidecars/sidecars.ts';
import type { WorkloadRefusal } from '../workload.ts';
import { parseRefusal } from './refusals.ts';

export type NewProxy = {
  readonly id: string;
  readonly group: string;
  readonly policy: PolicyDocument;
  readonly listen: BoxListen;
  readonly onRefusal: ((refusal: WorkloadRefusal) => void) | undefined;
};

/** A sidecar writes records together, at most as much later. */
const RECORDS_MS = 150;

export class WorkloadProxy {
  readonly #given: NewProxy;
  readonly #placed: Placement;
  readonly #sidecars: Sidecars;
  readonly #authority: BoxAuthority;
  readonly #log: Log;
  readonly #work = new WorkQueue();
  readonly token: string = randomBytes(24).toString('base64url');
  #policy: PolicyDocument;
  #proxy: BoxProxy | undefined;
  #isClosed = false;

  constructor(given: NewProxy, sidecars: Sidecars, authority: BoxAuthority, log: Log) {
    this.#given = given;
    this.#placed = { workspace_id: given.group, slot: 0 };
    this.#sidecars = sidecars;
    this.#authority = authority;
    this.#log = log;
    this.#policy = given.policy;
  }

  /** By which a client without a namespace of its own reaches it. */
  get url(): string {
    return this.#proxy?.url ?? '';
  }

  open(): Promise<void> {
    return this.#work.run(() => this.#open());
  }

  /** All certificates that the workload should trust. */
  async caBundle(): Promise<string> {
    const sidecar = await this.#sidecar();
    return bundleOf(this.#authority, { bundlePem: await sidecar.caBundle(), sidecarCaPem: sidecar.caPem });
  }

  /** Rejects with a BoxError, and the policy before stays. */
  apply(policy: PolicyDocument): Promise<void> {
    return this.#work.run(async () => {
      if (policy.version <= this.#policy.version) return;
      await this.#proxy?.apply(policy);
      this.#policy = policy;
    });
  }

  /** Its sidecar may have been lost. */
  async renew(): Promise<void> {
    await this.#work
      .run(async () => {
        if (!this.#isClosed && this.#proxy?.sidecar !== this.#sidecars.currentOf(this.#placed))
          await this.#open();
      })
      .catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        this.#log.warn(
          { workload: this.#given.id, reason },
          'a workload has no proxy until its sidecar runs again',
        );
      });
  }

  report(text: string): void {
    const refusal = parseRefusal(text);
    if (refusal !== undefined) this.#given.onRefusal?.(refusal);
  }

  close(): Promise<void> {
    return this.#work.run(async () => {
      this.#isClosed = true;
      const { id } = this.#given;
      const sidecar = this.#sidecars.currentOf(this.#placed);
      try {
        if (sidecar !== undefined) await BoxProxy.remove(id, sidecar);
        if (this.#given.onRefusal !== undefined) await delay(RECORDS_MS);
      } finally {
        await this.#sidecars.release(this.#placed, id);
      }
    });
  }

  #sidecar(): Promise<SidecarProcess> {
    return this.#sidecars.acquire(this.#placed, this.#given.id);
  }

  async #open(): Promise<void> {
    const { id, listen } = this.#given;
    const sidecar = await this.#sidecar();
    this.#proxy = await BoxProxy.create(id, sidecar, {
      listen: this.#sameListen(listen),
      authority: this.#authority,
      token: this.token,
      policy: this.#policy,
    });
  }

  /** The workload knows its port. */
  #sameListen(listen: BoxListen): BoxListen {
    const before = this.#proxy?.url;
    return before === undefined || 'handle' in listen
      ? listen
      : { ...listen, port: Number(new URL(before).port) };
  }
}
