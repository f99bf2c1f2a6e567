// A command of a box as its clients see it: output with offsets that outlives their connections, input, kill, and limits on its
// time. While a client follows the output, the command waits for that client, also for a while after its connection broke; while
// none does, old output is dropped.
import { WINDOW_BYTES } from '../../box-agent/protocol/credit.ts';
import { parseEnded, parseStarted, type Ended, type Started } from '../../box-agent/protocol/messages.ts';
import type { AgentChannel } from './agent-channel.ts';
import { AgentError } from './agent-error.ts';
import { CommandInput } from './command-input.ts';
import { OutputBudget, type OutputShare } from './output-budget.ts';
import { INFLATION, OutputRing } from './output-ring.ts';
import type { RunningCall, Stream } from './running-call.ts';

export type CommandRequest = {
  readonly command: string;
  readonly shell: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly stdin: boolean;
  /** Undefined: none. */
  readonly timeoutMs: number | undefined;
  /** How long it may run without a client; undefined: without limit. */
  readonly idleMs: number | undefined;
  readonly killOnDisconnect: boolean;
};

export type Outcome =
  | { readonly kind: 'exit'; readonly exitCode: number }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'error'; readonly error: AgentError };

export type Output = { readonly stream: Stream; readonly text: string; readonly offset: number };
export type Offsets = { readonly stdout: number; readonly stderr: number };
type Reader = { stdout: number; stderr: number };

/** Of one message to a client. */
const PIECE_BYTES = 64 * 1024;
/** How long a killed command may take to end. */
const KILL_MS = 10_000;
const SIGNAL_BASE = 128;
/** Node turns a timer that is too long for it into 1 ms. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Each holds output back for the others, and a connection. */
const MAX_READERS = 16;

export class Command {
  readonly request: CommandRequest;
  readonly #share: OutputShare;
  readonly #rings: Readonly<Record<Stream, OutputRing>>;
  readonly #ringBytes: number;
  readonly #started: PromiseWithResolvers<Started> = Promise.withResolvers();
  readonly #ended: PromiseWithResolvers<Outcome> = Promise.withResolvers();
  readonly #readers: Set<Reader> = new Set();
  readonly #holdMs: number;
  /** Where the last client was that left before the end: it may come again. */
  #held: Reader | undefined;
  #hold: NodeJS.Timeout | undefined;
  readonly #timers: Set<NodeJS.Timeout> = new Set();
  #idle: NodeJS.Timeout | undefined;
  #call: RunningCall<Started, Ended> | undefined;
  readonly #input: CommandInput = new CommandInput();
  #isForgotten = false;
  #ungranted = 0;
  #hasTimedOut = false;
  #isKilled = false;
  #outcome: Outcome | undefined;
  #changed: PromiseWithResolvers<void> = Promise.withResolvers();

  /** `ringBytes` of each output are kept while `share` has space; at least three times the window of a call. */
  constructor(
    request: CommandRequest,
    ringBytes: number,
    share: OutputShare = new OutputBudget().createShare(() => false),
    holdMs: number = 0,
  ) {
    this.#holdMs = holdMs;
    this.request = request;
    this.#share = share;
    this.#ringBytes = Math.max(ringBytes, INFLATION * WINDOW_BYTES);
    const memory = share.memoryFor(this);
    const createRing = (): OutputRing => new OutputRing(this.#ringBytes, memory);
    this.#rings = { stdout: createRing(), stderr: createRing() };
    this.#started.promise.catch(() => undefined);
  }

  /** Rejects with an AgentError where the command could not be started. */
  get started(): Promise<Started> {
    return this.#started.promise;
  }

  get ended(): Promise<Outcome> {
    return this.#ended.promise;
  }

  get isRunning(): boolean {
    return this.#outcome === undefined;
  }

  get allocated(): number {
    return this.#rings.stdout.allocated + this.#rings.stderr.allocated;
  }

  get isFollowed(): boolean {
    return this.#readers.size > 0;
  }
  /** Offsets of the oldest output that is kept. */
  get oldest(): Offsets {
    return { stdout: this.#rings.stdout.start, stderr: this.#rings.stderr.start };
  }

  /** Gives up the older half of what it holds. False where it holds little. */
  shrink(): boolean {
    const hasShrunk = Object.values(this.#rings)
      .map((ring) => ring.shrink())
      .includes(true);
    if (hasShrunk) this.#wake();
    return hasShrunk;
  }

  /** It has ended and no client can find it any more: once those that follow it have left, its output counts no more. */
  forget(): void {
    if (this.#isForgotten) return;
    this.#isForgotten = true;
    if (!this.isFollowed) this.#share.give(this.allocated);
  }

  /** Runs it to its end. `open` gives the channel to the box's agent. */
  async run(open: () => Promise<AgentChannel>): Promise<void> {
    try {
      const channel = await open();
      const { command, shell, env, cwd = null, stdin } = this.request;
      const call = channel.call(
        { method: 'execute', command, shell, env, cwd, stdin },
        {
          parseHead: parseStarted,
          parseResult: parseEnded,
          onData: (stream, bytes) => this.#receive(stream, bytes),
        },
      );
      this.#call = call;
      this.#input.begin(call);
      if (this.#isKilled) call.kill();
      this.#startTimers();
      this.#started.resolve(await call.head);
      const { exitCode, signal } = await call.result;
      const code = signal === 0 ? exitCode : SIGNAL_BASE + signal;
      this.#end(this.#hasTimedOut ? { kind: 'timeout' } : { kind: 'exit', exitCode: code });
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      this.#started.reject(error);
      const hasTimedOut = this.#hasTimedOut && error.kind === 'cancelled';
      this.#end(hasTimedOut ? { kind: 'timeout' } : { kind: 'error', error });
    }
  }

  /** Input for its stdin; resolves when the command can take more. What arrives before it has started waits for it. */
  write(bytes: Uint8Array): Promise<void> {
    return this.#input.write(bytes);
  }

  closeInput(): void {
    this.#input.end();
  }

  kill(): void {
    if (this.#isKilled || !this.isRunning) return;
    this.#isKilled = true;
    this.#call?.kill();
    // A process that the kernel does not end, or an agent that does not do it.
    this.#startTimer(KILL_MS, () => this.#call?.cancel());
  }

  /** What is kept of an output; `isWhole` is false where its beginning is gone. */
  kept(stream: Stream): { readonly text: string; readonly isWhole: boolean } {
    const ring = this.#rings[stream];
    return { text: ring.read(0, this.#ringBytes)?.text ?? '', isWhole: ring.start === 0 };
  }

  /**
   * Output from the offsets on until the command has ended, as it comes, or until `left` aborts. Throws an AgentError where
   * output is given up that the client has yet to get, and where too many follow.
   */
  async *follow(from: Offsets, left: AbortSignal): AsyncGenerator<Output, void, undefined> {
    // Offsets come from the client.
    const clamped = (stream: Stream): number => {
      const { start, end } = this.#rings[stream];
      return Math.max(start, Math.min(from[stream], end));
    };
    if (this.#readers.size >= MAX_READERS) throw new AgentError('busy');
    const reader: Reader = { stdout: clamped('stdout'), stderr: clamped('stderr') };
    this.#attach(reader);
    const stop = (): void => this.#wake();
    left.addEventListener('abort', stop);
    try {
      while (!left.aborted) {
        const changed = this.#changed.promise;
        const output = this.#next(reader, 'stdout') ?? this.#next(reader, 'stderr');
        if (output !== undefined) yield output;
        else if (!this.isRunning) return;
        else await changed;
        this.#grant();
      }
    } finally {
      left.removeEventListener('abort', stop);
      this.#detach(reader);
    }
  }

  #next(reader: Reader, stream: Stream): Output | undefined {
    if (this.#rings[stream].start > reader[stream]) throw new AgentError('output_lost');
    const piece = this.#rings[stream].read(reader[stream], PIECE_BYTES);
    if (piece === undefined) return undefined;
    reader[stream] = piece.end;
    return { stream, text: piece.text, offset: piece.offset };
  }

  #attach(reader: Reader): void {
    this.#readers.add(reader);
    this.#release();
    clearTimeout(this.#idle);
  }

  #detach(reader: Reader): void {
    this.#readers.delete(reader);
    if (!this.isFollowed && this.isRunning) this.#startHold(reader);
    if (this.#isForgotten && !this.isFollowed) this.#share.give(this.allocated);
    this.#grant();
    if (this.#readers.size > 0 || !this.isRunning) return;
    if (this.request.killOnDisconnect) this.kill();
    else this.#startIdle();
  }

  #receive(stream: Stream, bytes: Buffer): void {
    this.#rings[stream].push(bytes);
    this.#ungranted += bytes.length;
    this.#grant();
    this.#wake();
  }

  #startHold(reader: Reader): void {
    this.#release();
    if (this.#holdMs === 0) return;
    this.#held = reader;
    this.#hold = setTimeout(() => {
      this.#release();
      this.#grant();
    }, this.#holdMs).unref();
  }

  #release(): void {
    clearTimeout(this.#hold);
    this.#held = undefined;
  }

  /** As long as a window more would not overwrite what a reader has yet to get. */
  #grant(): void {
    const readers = this.#held === undefined ? [...this.#readers] : [this.#held];
    const lag = (stream: Stream): number =>
      Math.max(0, ...readers.map((reader) => this.#rings[stream].end - reader[stream]));
    if (this.#ungranted === 0) return;
    const waiting = Math.max(lag('stdout'), lag('stderr'));
    if (waiting > this.#ringBytes - INFLATION * WINDOW_BYTES && waiting > 0) return;
    this.#call?.grant(this.#ungranted);
    this.#ungranted = 0;
  }

  #startTimers(): void {
    if (this.request.timeoutMs !== undefined)
      this.#startTimer(this.request.timeoutMs, () => {
        this.#hasTimedOut = true;
        this.kill();
      });
    if (this.#readers.size === 0) this.#startIdle();
  }

  #startIdle(): void {
    const { idleMs = MAX_TIMER_MS } = this.request;
    clearTimeout(this.#idle);
    if (idleMs < MAX_TIMER_MS) this.#idle = setTimeout(() => this.kill(), idleMs).unref();
  }

  #startTimer(ms: number, onEnd: () => void): void {
    if (ms < MAX_TIMER_MS) this.#timers.add(setTimeout(onEnd, ms).unref());
  }

  #end(outcome: Outcome): void {
    for (const ring of Object.values(this.#rings)) ring.finish();
    this.#outcome = outcome;
    this.#input.begin(undefined);
    clearTimeout(this.#idle);
    this.#release();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#wake();
    this.#ended.resolve(outcome);
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
