// The boxes of this machine: each has an engine that isolates it and a sandbox in a sidecar. One operation at a time for each
// box; what fails half-way is undone, so that nothing serves a client that the platform does not know.
import type { Duplex } from 'node:stream';
import type { Log } from '../base/log.ts';
import { WorkQueue } from '../base/work-queue.ts';
import type { BoxDocument, PolicyDocument } from './box-document.ts';
import { type BoxAuthorities, type BoxAuthority, bundleOf } from './box-authorities.ts';
import { BoxError } from './box-error.ts';
import type { BoxStore, Placement } from './box-store.ts';
import type { BoxEngine, OpenBox } from './engine.ts';
import { placeholdersOf } from './placeholders.ts';
import { BoxProxy } from './sidecars/box-proxy.ts';
import type { SidecarProcess } from './sidecars/sidecar-process.ts';
import type { Sidecars } from './sidecars/sidecars.ts';
import { type AppliedBox, needsToken, show, type StartedBox, toApplied } from './started-box.ts';

export type BoxReport = {
  readonly id: string;
  readonly state: 'running' | 'stopped' | 'failed';
  readonly reason?: string;
  readonly applied_version: number;
};

type Running = {
  document: BoxDocument;
  readonly placed: Placement;
  readonly open: OpenBox;
  /** Of the CA of the box. */
  readonly caPem: string;
  proxy: BoxProxy;
  token: string;
  /** `env_vars` of the rules in effect. */
  placeholders: Readonly<Record<string, string>>;
};

export type BoxesOptions = {
  readonly engine: BoxEngine;
  readonly sidecars: Sidecars;
  readonly store: BoxStore;
  readonly authorities: BoxAuthorities;
  readonly log: Log;
  onChange(): void;
  /** A box does not run any more: its agent must end. */
  onEnd(id: string): Promise<void>;
};

export class Boxes {
  readonly #options: BoxesOptions;
  readonly #running = new Map<string, Running>();
  /** Why boxes ended by themselves, until they are started again or removed. */
  readonly #failures = new Map<string, string>();
  /** Stopped boxes of which something is left: the next operation ends that first. */
  readonly #unclosed = new Map<string, Running>();
  readonly #queues = new Map<string, { readonly queue: WorkQueue; waiting: number }>();

  constructor(options: BoxesOptions) {
    this.#options = options;
  }

  /** Idempotent: a box that runs goes on, with this policy and this token. */
  start(document: BoxDocument, policy: PolicyDocument): Promise<StartedBox> {
    return this.#inOrder(document.id, async () => {
      if (this.#unclosed.has(document.id)) await this.#end(document.id);
      const running = this.#running.get(document.id);
      const started = running
        ? await this.#update(await this.#renew(running, document, policy), document)
        : await this.#open(document, policy);
      this.#failures.delete(document.id);
      return show(started);
    });
  }

  apply(id: string, policy: PolicyDocument): Promise<AppliedBox> {
    return this.#inOrder(id, async () => {
      const running = this.#running.get(id);
      if (!running) throw new BoxError('failed', 'The box does not run: start it');
      await this.#renew(running, { ...running.document, proxy_token: running.token }, policy);
      return toApplied(running);
    });
  }

  stop(id: string): Promise<void> {
    return this.#inOrder(id, async () => {
      await this.#end(id);
      this.#failures.delete(id);
    });
  }

  remove(id: string): Promise<void> {
    return this.#inOrder(id, async () => {
      const placed = this.#options.store.get(id);
      await this.#end(id);
      await this.#removeFiles(id, placed);
      this.#failures.delete(id);
    });
  }

  list(): readonly BoxReport[] {
    const ids = new Set([...this.#options.store.ids(), ...this.#running.keys()]);
    return [...ids].map((id): BoxReport => {
      const reason = this.#failures.get(id);
      if (reason !== undefined) return { id, state: 'failed', reason, applied_version: 0 };
      const running = this.#running.get(id);
      const isServed = running !== undefined && this.#isServed(running);
      if (!running && !this.#unclosed.has(id)) return { id, state: 'stopped', applied_version: 0 };
      return { id, state: 'running', applied_version: isServed ? running.proxy.version : 0 };
    });
  }

  /** Throws a BoxError unless an agent may be started in the box. */
  requireAgent(id: string): void {
    this.#agentOf(id);
  }

  async openAgent(id: string): Promise<Duplex> {
    const { running, openAgent } = this.#agentOf(id);
    return openAgent(running.placeholders);
  }

  /** Rejects when each box was tried, with the error of the first that is not stopped. */
  async close(): Promise<void> {
    const ended = await Promise.allSettled(
      [...this.#running.keys(), ...this.#unclosed.keys()].map((id) => this.stop(id)),
    );
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
  }

  async #open(document: BoxDocument, policy: PolicyDocument): Promise<Running> {
    const { engine, sidecars, store, authorities } = this.#options;
    const { id, workspace_id, proxy_token: token } = document;
    const before = store.get(id);
    const placed = await store.place(id, workspace_id);
    const opened: { open?: OpenBox; sidecar?: SidecarProcess } = {};
    const undo = async (): Promise<void> => {
      // Its response may be what was lost: then it serves the box.
      if (opened.sidecar) await BoxProxy.remove(id, opened.sidecar);
      await opened.open?.close();
      await sidecars.release(placed, id);
      await this.#forget(id, before);
    };
    const starting = sidecars.acquire(placed, id).then(async (sidecar) => {
      opened.sidecar = sidecar;
      const authority = await authorities.obtain(id);
      const caBundle = (): Promise<string> => readBundle(authority, sidecar);
      const open = await engine.open(document, { port: placed.port, caBundle });
      opened.open = open;
      const proxy = await BoxProxy.create(id, sidecar, { listen: open.listen, authority, token, policy });
      const caPem = authority.certificatePem;
      return { open, proxy, caPem, placed: await this.#keepPort(id, placed, proxy, open) };
    });
    const started = await this.#undoing(starting, undo);
    const { open } = started;
    const running = { document, ...started, token, placeholders: placeholdersOf(policy) };
    this.#running.set(id, running);
    void open.ended.then((reason) => this.#onEnded(running, reason));
    return running;
  }

  /** The sandbox again if its sidecar has lost it, or the policy and the token where they are others. */
  async #renew(running: Running, document: BoxDocument, policy: PolicyDocument): Promise<Running> {
    const { id, proxy_token: token } = document;
    const { open, placed, proxy } = running;
    if (this.#isServed(running)) {
      await proxy.apply(policy);
      if (token !== running.token && needsToken(open)) await proxy.replaceToken(token);
    } else {
      const { port } = placed;
      const listen =
        'handle' in open.listen ? open.listen : { ...open.listen, port: port ?? open.listen.port };
      const { sidecars, authorities } = this.#options;
      const authority = await authorities.obtain(id);
      const sidecar = await sidecars.acquire(placed, id);
      running.proxy = await BoxProxy.create(id, sidecar, { listen, authority, token, policy });
    }
    running.token = token;
    if (running.proxy.version === policy.version) running.placeholders = placeholdersOf(policy);
    return running;
  }

  /** Limits, variables and certificates of a box that runs already. */
  async #update(running: Running, document: BoxDocument): Promise<Running> {
    const { open, placed, proxy } = running;
    const authority = await this.#options.authorities.obtain(document.id);
    const caBundle = (): Promise<string> => readBundle(authority, proxy.sidecar);
    await open.update?.(document, { port: placed.port, caBundle });
    running.document = document;
    return running;
  }

  #agentOf(id: string) {
    const running = this.#running.get(id);
    if (!running) throw new BoxError('failed', 'The box does not run: start it');
    const { openAgent } = running.open;
    if (openAgent) return { running, openAgent };
    throw new BoxError(
      'not_supported',
      'Somebody else runs this box: commands and files are not reached from here',
    );
  }

  async #undoing<T>(work: Promise<T>, undo: () => Promise<void>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      await undo();
      throw error;
    }
  }

  /** A box that never ran leaves nothing behind when it does not start. */
  async #forget(id: string, before: Placement | undefined): Promise<void> {
    if (before === undefined) await this.#removeFiles(id, this.#options.store.get(id));
  }

  async #removeFiles(id: string, placed: Placement | undefined): Promise<void> {
    const { engine, store, sidecars, authorities } = this.#options;
    await engine.remove(id);
    // Also where what a failed start had opened could not be closed.
    if (placed) await sidecars.release(placed, id);
    await authorities.remove(id);
    await store.remove(id);
    if (placed && !store.isUsed(placed)) await sidecars.forget(placed);
  }

  async #keepPort(id: string, placed: Placement, proxy: BoxProxy, { listen }: OpenBox): Promise<Placement> {
    const port = Number(new URL(proxy.url).port);
    if ('handle' in listen || port === placed.port) return placed;
    const kept = { ...placed, port };
    await this.#options.store.set(id, kept);
    return kept;
  }

  async #end(id: string): Promise<void> {
    const running = this.#running.get(id) ?? this.#unclosed.get(id);
    if (!running) return;
    // Also one that is not known to serve the box: the response that said so may have been lost.
    const sidecar = this.#options.sidecars.currentOf(running.placed);
    if (sidecar) await BoxProxy.remove(id, sidecar);
    this.#running.delete(id);
    this.#unclosed.set(id, running);
    await this.#options.onEnd(id);
    await running.open.close();
    await this.#options.sidecars.release(running.placed, id);
    this.#unclosed.delete(id);
  }

  #onEnded(running: Running, reason: string): void {
    const { id } = running.document;
    void this.#inOrder(id, async () => {
      if (this.#running.get(id) !== running) return;
      this.#failures.set(id, reason);
      this.#options.log.warn({ box: id, reason }, 'a box ended by itself');
      await this.#end(id).finally(() => this.#options.onChange());
    }).catch((error: unknown) =>
      this.#options.log.error({ box: id, reason: String(error) }, 'a box that ended is not removed'),
    );
  }

  #isServed({ placed, proxy }: Running): boolean {
    return this.#options.sidecars.currentOf(placed) === proxy.sidecar;
  }

  async #inOrder<T>(id: string, work: () => Promise<T>): Promise<T> {
    const line = this.#queues.get(id) ?? { queue: new WorkQueue(), waiting: 0 };
    this.#queues.set(id, line);
    line.waiting += 1;
    try {
      return await line.queue.run(work);
    } finally {
      line.waiting -= 1;
      if (line.waiting === 0) this.#queues.delete(id);
    }
  }
}

/** The roots of the system, and the CA of the box in place of that of its sidecar. */
async function readBundle(authority: BoxAuthority, sidecar: SidecarProcess): Promise<string> {
  return bundleOf(authority, { bundlePem: await sidecar.caBundle(), sidecarCaPem: sidecar.caPem });
}
