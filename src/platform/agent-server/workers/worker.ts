// One worker from its start to its end: hello, load and ready, calls in both directions, and whether it responds. It ends with
// its process, when it breaks the protocol, and when it has not responded for long; everything that runs in it fails then.
import { setTimeout as pause } from 'node:timers/promises';
import type { WorkerCalls } from '../../../agent-worker/protocol/calls.ts';
import { ProtocolError } from '../../../agent-worker/protocol/frame.ts';
import {
  type DeploymentToLoad,
  type Loaded,
  type LoadFailure,
  type Message,
  PROTOCOL_VERSION,
} from '../../../agent-worker/protocol/messages.ts';
import type { Log } from '../../../base/log.ts';
import { ServerCallTable } from './server-calls.ts';
import type { TurnBudget } from './turn-budget.ts';
import type { CallLink, WorkerCall } from './worker-call.ts';
import { WorkerChannel } from './worker-channel.ts';
import { WorkerError } from './worker-error.ts';
import { describeExit, type ExitReason, failureOf, isAborted, reasonOf } from './worker-exit.ts';
import type { WorkerLimits } from './worker-limits.ts';
import { WorkerOutput } from './worker-output.ts';
import type { WorkerProcess } from './worker-process.ts';
import { WorkerPulse } from './worker-pulse.ts';

export type WorkerParts = {
  readonly process: WorkerProcess;
  readonly deployment: DeploymentToLoad;
  readonly limits: WorkerLimits;
  readonly budget: TurnBudget;
  readonly log: Log;
  /** It has begun or ceased to respond. */
  onPulse(): void;
  onExit?(reason: ExitReason): void;
};

/** The deployment cannot be loaded, or the process did not come so far. */
export class WorkerStartError extends Error {
  override readonly name: string = 'WorkerStartError';
  readonly failure: LoadFailure | undefined;

  constructor(message: string, failure?: LoadFailure) {
    super(message);
    this.failure = failure;
  }
}

/** For a process to end whose channel has, and for what it has written before. */
const EXIT_MS = 1_000;

export class Worker {
  readonly #parts: WorkerParts;
  readonly #channel: WorkerChannel;
  readonly #calls: Map<number, WorkerCall> = new Map();
  /** Calls that nobody waits for, and that the worker has not ended: what still comes of them is discarded. */
  readonly #abandoned: Map<number, WorkerCall> = new Map();
  readonly #asked: ServerCallTable;
  readonly #pulse: WorkerPulse;
  readonly #output: WorkerOutput;
  readonly #ready: PromiseWithResolvers<Loaded> = Promise.withResolvers();
  readonly #ended: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #startLimit: NodeJS.Timeout;
  #exitLimit: NodeJS.Timeout | undefined;
  #state: 'started' | 'loading' | 'ready' | 'ended' = 'started';
  #isSettled = false;
  #nextId = 0;

  constructor(parts: WorkerParts) {
    const { process, limits, budget, log } = parts;
    this.#parts = parts;
    this.#channel = new WorkerChannel(process.channel, budget, {
      onMessage: (message, bytes) => this.#receive(message, bytes),
      onEnd: (error) =>
        error === undefined
          ? this.#expectExit()
          : this.#end('protocol', `broke the protocol: ${error.message}`),
    });
    this.#asked = new ServerCallTable({
      ...{ log, maxBytes: limits.askedBytes },
      send: (message) => void this.#channel.send(message),
      onFull: (isFull) => {
        this.#channel.hold(isFull);
        this.#pulse.hold(isFull);
      },
    });
    this.#pulse = new WorkerPulse(limits, {
      ping: (sequence) => void this.#channel.send({ type: 'ping', sequence }),
      onChange: () => this.#onPulse(),
      onDead: () => this.#end('blocked', `did not respond for ${limits.killMs / 1000} seconds`),
    });
    this.#output = new WorkerOutput(log, process.pid);
    this.#output.follow(process.stdout, 'stdout');
    this.#output.follow(process.stderr, 'stderr');
    void process.ended.then((how) => this.#exit(how));
    this.#startLimit = setTimeout(() => this.#end('not_ready', 'not ready in time'), limits.startMs);
    this.#ready.promise.catch(() => undefined);
  }

  /** Rejects with a WorkerStartError. */
  get ready(): Promise<Loaded> {
    return this.#ready.promise;
  }

  /** Resolves when the process has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get isUsable(): boolean {
    return this.#state === 'ready' && !this.#pulse.isBlocked;
  }

  /** It may be held up: there are better ones for a call. */
  get isSilent(): boolean {
    return this.#pulse.isSilent;
  }

  get isBlocked(): boolean {
    return this.#state === 'ready' && this.#pulse.isBlocked;
  }

  /** It holds too many calls that were given up: it gets new work where there is no other, and ends after what runs. */
  get isWorn(): boolean {
    return this.#abandoned.size > this.#parts.limits.abandonedCalls;
  }

  /** Calls that run. */
  get load(): number {
    return this.#calls.size;
  }

  /** Throws FrameTooLarge; a worker that has ended fails the call as `lost`. */
  begin<C extends WorkerCall, M extends keyof WorkerCalls>(
    create: (link: CallLink) => C,
    method: M,
    params: WorkerCalls[M]['params'],
  ): C {
    const id = this.#nextId;
    this.#nextId += 1;
    const call = create({
      id,
      send: (message) => this.#channel.send(message),
      leave: () => void setTimeout(() => this.#abandon(id), this.#parts.limits.cancelMs).unref(),
    });
    if (this.#state === 'ended') {
      call.fail(new WorkerError('lost', 'had ended when the call was to begin'));
      return call;
    }
    this.#channel.send({ type: 'call', id, method, params });
    this.#calls.set(id, call);
    return call;
  }

  /** Its calls fail as `lost`. */
  close(): void {
    this.#end('closed', undefined);
  }

  #receive(message: Message, bytes: number): void {
    if (message.type === 'pong') return this.#pulse.receive(message.sequence);
    if (message.type === 'log') return this.#output.write(message.level, 'log', message.message);
    if (this.#state !== 'ready') return this.#start(message);
    if (message.type === 'call') {
      const call = message.of === undefined ? undefined : this.#calls.get(message.of);
      call?.begun?.();
      return this.#asked.begin(message, bytes, call?.port);
    }
    switch (message.type) {
      case 'result':
      case 'error':
      case 'events':
      case 'data':
      case 'credit': {
        const call = this.#calls.get(message.id) ?? this.#abandoned.get(message.id);
        if (call !== undefined) {
          if (call.receive(message, bytes)) this.#forget(message.id);
          return;
        }
        // Of an application that has ended its response before it has read the request, credit may be under way.
        if (message.type === 'credit' && message.id < this.#nextId) return;
        throw new ProtocolError(`a message ${message.type} of a call that does not run`);
      }
      default:
        throw new ProtocolError(`a message ${message.type} from a worker`);
    }
  }

  #start(message: Message): void {
    if (message.type === 'hello' && this.#state === 'started') {
      const { version } = message;
      if (version !== PROTOCOL_VERSION)
        throw new ProtocolError(`version ${version} of the protocol; this server speaks ${PROTOCOL_VERSION}`);
      this.#state = 'loading';
      this.#channel.send({ type: 'load', deployment: this.#parts.deployment });
    } else if (message.type === 'ready' && this.#state === 'loading') {
      this.#state = 'ready';
      clearTimeout(this.#startLimit);
      this.#pulse.start();
      this.#ready.resolve(message.loaded);
    } else if (message.type === 'failed' && this.#state === 'loading') {
      const { key, message: text } = message.failure;
      this.#ready.reject(new WorkerStartError(`${key}: ${text}`, message.failure));
      this.#end('load_failed', undefined);
    } else throw new ProtocolError(`a message ${message.type} before ready`);
  }

  #abandon(id: number): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    this.#abandoned.set(id, call);
    this.#calls.delete(id);
    if (this.isWorn) this.#parts.onPulse();
    this.#endWorn();
  }

  #forget(id: number): void {
    this.#calls.delete(id);
    this.#abandoned.delete(id);
    this.#endWorn();
  }

  #endWorn(): void {
    if (this.isWorn && this.#calls.size === 0)
      this.#end('worn', `${this.#abandoned.size} cancelled calls have not ended`);
  }

  #onPulse(): void {
    if (this.#pulse.isBlocked) for (const call of this.#calls.values()) call.block?.();
    this.#parts.onPulse();
  }

  async #exit(how: string): Promise<void> {
    if (!this.#isSettled) {
      this.#stop();
      // The reason may be among what is still to be read.
      if (isAborted(how))
        await Promise.race([this.#output.closed(), pause(EXIT_MS, undefined, { ref: false })]);
      const { isOutOfHeap } = this.#output;
      const exit = { how, isOutOfHeap, heapMegabytes: this.#parts.limits.heapMegabytes };
      this.#settle(reasonOf(exit), describeExit(exit));
    }
    // What it has started is in its group.
    this.#parts.process.kill();
    this.#ended.resolve();
  }

  /** Its channel has ended, which does not say why: the end of its process does, soon. */
  #expectExit(): void {
    if (this.#state === 'ended') return;
    this.#stop();
    this.#exitLimit = setTimeout(() => this.#settle('exited', 'closed its channel'), EXIT_MS);
  }

  #end(reason: ExitReason, why: string | undefined): void {
    this.#stop();
    this.#settle(reason, why);
  }

  /** It gets nothing more. */
  #stop(): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    clearTimeout(this.#startLimit);
    this.#pulse.stop();
    this.#channel.close();
  }

  #settle(reason: ExitReason, why: string | undefined): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#parts.onExit?.(reason);
    clearTimeout(this.#exitLimit);
    this.#parts.process.kill();
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    this.#abandoned.clear();
    const kind = failureOf(reason);
    if (why !== undefined) this.#report(kind, why);
    const error = new WorkerError(kind, why);
    for (const call of calls) call.fail(error);
    this.#ready.reject(new WorkerStartError(`a worker has not started: ${why ?? 'it has ended'}`));
  }

  #report(kind: string, why: string): void {
    const { process, log } = this.#parts;
    log.error({ worker: process.pid, kind, why }, 'a worker has ended');
  }
}
