// The box host's end of the channel to one agent: calls multiplexed over a stream. The agent runs among hostile processes, so
// that everything it sends is bounded: frames by their type, data by what was granted, calls by those that were begun. What
// breaks the protocol ends the channel, and with it the agent; one that is silent is asked for a sign of life.
import type { Duplex } from 'node:stream';
import {
  encodeFrameHead,
  type Frame,
  FrameReader,
  FROM_AGENT,
  type FrameType,
  MAX_CALL_BYTES,
  MAX_CALL_ID,
  ProtocolError,
} from '../../box-agent/protocol/frame.ts';
import { type CallParams, encodeJson } from '../../box-agent/protocol/messages.ts';
import { AgentError, type AgentErrorKind } from './agent-error.ts';
import { type CallShape, RunningCall } from './running-call.ts';

export type ChannelLimits = {
  /** Calls that run, those that were cancelled and have not ended included. */
  readonly calls: number;
  /** How long the agent may be silent while a call runs before it is asked, and then until it responds. */
  readonly silentMs: number;
  /** How much of each period what it sends may be worked on: one box must not use up the thread that serves all. */
  readonly workMs: number;
};

export const defaultChannelLimits: ChannelLimits = { calls: 64, silentMs: 10_000, workMs: 25 };

const NOTHING = Buffer.alloc(0);
/** Of what the agent has not taken yet; then no call begins. */
const MAX_UNTAKEN_BYTES = 4 * 1024 * 1024;
const PERIOD_MS = 100;

export class AgentChannel {
  readonly #channel: Duplex;
  readonly #limits: ChannelLimits;
  readonly #calls: Map<number, RunningCall<unknown, unknown>> = new Map();
  readonly #closed: PromiseWithResolvers<AgentError> = Promise.withResolvers();
  #nextId = 1;
  #error: AgentError | undefined;
  #drained: PromiseWithResolvers<void> | undefined;
  #hasReceived = false;
  #hasTaken = false;
  readonly #onTaken = (): void => {
    this.#hasTaken = true;
  };
  #workedMs = 0;
  #period: NodeJS.Timeout | undefined;
  #pong: PromiseWithResolvers<boolean> | undefined;
  #watch: NodeJS.Timeout | undefined;
  /** Called when the last call has ended. */
  onIdle: (() => void) | undefined;

  /** The owner of `channel` must end the agent when the channel is destroyed: a stopped process does not notice it. */
  constructor(channel: Duplex, limits: ChannelLimits = defaultChannelLimits) {
    this.#channel = channel;
    this.#limits = limits;
    const reader = new FrameReader(FROM_AGENT);
    channel.on('data', (piece: Buffer) => this.#receivePiece(reader, piece));
    channel.on('drain', () => this.#wake());
    channel.on('error', () => this.#end('gone'));
    channel.on('end', () => this.#end('gone'));
    channel.on('close', () => this.#end('gone'));
    if (channel.destroyed) this.#end('gone');
  }

  /** Resolves with the reason when the channel has ended. */
  get closed(): Promise<AgentError> {
    return this.#closed.promise;
  }

  get isClosed(): boolean {
    return this.#error !== undefined;
  }

  get isIdle(): boolean {
    return this.#calls.size === 0;
  }

  /** Throws an AgentError when the channel has ended or too many calls run. */
  call<H, R>(params: CallParams, shape: CallShape<H, R>): RunningCall<H, R> {
    if (this.#error !== undefined) throw this.#error;
    const isFull = this.#channel.writableLength > MAX_UNTAKEN_BYTES;
    if (isFull || this.#calls.size >= this.#limits.calls) throw new AgentError('busy');
    const payload = encodeJson(params);
    if (payload.length > MAX_CALL_BYTES) throw new AgentError('failed', 'E2BIG');
    const id = this.#nextId;
    this.#nextId += 2;
    const call = new RunningCall(shape, (type, bytes) => this.#send(type, id, bytes));
    this.#calls.set(id, call as RunningCall<unknown, unknown>);
    void this.#send('call', id, payload);
    this.#startWatch();
    // Then another agent is started.
    if (this.#nextId > MAX_CALL_ID) void call.result.catch(() => undefined).then(() => this.close());
    return call;
  }

  /** Whether a process of the box lives, as the agent says. An agent that does not respond ends the channel. */
  async hasOtherProcesses(): Promise<boolean> {
    if (this.#error !== undefined) return false;
    if (this.#pong === undefined) {
      this.#pong = Promise.withResolvers();
      void this.#send('ping', 0, NOTHING);
      this.#startWatch();
    }
    return this.#pong.promise;
  }

  /** Ends the agent; running calls fail. */
  close(kind: AgentErrorKind = 'stopped'): void {
    this.#end(kind);
  }

  #receivePiece(reader: FrameReader, piece: Buffer): void {
    if (this.#error !== undefined) return;
    this.#hasReceived = true;
    const startedMs = performance.now();
    try {
      for (const frame of reader.read(piece)) {
        this.#receive(frame);
        if (this.isClosed) return;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#end('protocol');
    }
    this.#pace(performance.now() - startedMs);
  }

  /** Nothing more is read in a period in which the share of the channel is used up. */
  #pace(workedMs: number): void {
    if (this.isClosed) return;
    this.#workedMs += workedMs;
    if (this.#workedMs > this.#limits.workMs) this.#channel.pause();
    this.#period ??= setTimeout(() => {
      this.#period = undefined;
      this.#workedMs = 0;
      if (!this.isClosed) this.#channel.resume();
    }, PERIOD_MS).unref();
  }

  #receive(frame: Frame): void {
    if (frame.type === 'pong') {
      if (this.#pong === undefined || frame.id !== 0) throw new ProtocolError('a pong without a ping');
      this.#pong.resolve(frame.payload[0] !== 0);
      this.#pong = undefined;
      return;
    }
    const call = this.#calls.get(frame.id);
    if (call === undefined) throw new ProtocolError('a frame of a call that does not run');
    if (!call.receive(frame)) return;
    this.#calls.delete(frame.id);
    if (this.#calls.size > 0) return;
    if (this.#pong === undefined) this.#stopWatch();
    this.onIdle?.();
  }

  async #send(type: FrameType, id: number, payload: Buffer): Promise<void> {
    if (this.#error !== undefined) return;
    const channel = this.#channel;
    channel.cork();
    channel.write(encodeFrameHead(type, id, payload.length), this.#onTaken);
    const hasCapacity = payload.length === 0 || channel.write(payload);
    channel.uncork();
    if (hasCapacity) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  #wake(): void {
    this.#drained?.resolve();
    this.#drained = undefined;
  }

  /**
   * While something is awaited: one that gave no sign of life for a period is asked, one that gives none for another is ended.
   * One that sends and does not read lives only in appearance: what it is sent would fill the memory of this process.
   */
  #startWatch(): void {
    if (this.#watch !== undefined) return;
    this.#hasReceived = false;
    let wasAsked = this.#pong !== undefined;
    const check = (): void => {
      if (this.#calls.size === 0 && this.#pong === undefined) return this.#stopWatch();
      const isReading = this.#hasTaken || this.#channel.writableLength === 0;
      const isAlive = this.#hasReceived && isReading;
      if (!isAlive && wasAsked) return this.#end('unresponsive');
      wasAsked = !isAlive;
      this.#hasReceived = false;
      this.#hasTaken = false;
      if (wasAsked) void this.hasOtherProcesses();
    };
    this.#watch = setInterval(check, this.#limits.silentMs).unref();
  }

  #stopWatch(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  #end(kind: AgentErrorKind): void {
    if (this.#error !== undefined) return;
    const error = new AgentError(kind);
    this.#error = error;
    this.#stopWatch();
    clearTimeout(this.#period);
    this.#channel.destroy();
    this.#wake();
    this.#pong?.resolve(false);
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.fail(error);
    this.#closed.resolve(error);
  }
}
