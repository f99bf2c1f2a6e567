// A program from the start of what isolates it to its end: its input, its output by lines, and whether it has begun.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable, Writable } from 'node:stream';
import { within } from '../../box-host/bubblewrap/time-limit.ts';
import { lastLine, systemEnvironment } from '../../box-host/command.ts';
import type { Launch, ProgramExit } from '../isolation/isolation.ts';
import { LineReader } from '../output/line-reader.ts';
import type { WorkloadSpec } from '../workload.ts';
import { BEGIN_DESCRIPTOR, type Beginning, encodeBeginning } from './begin-script.ts';

const INPUT_DESCRIPTOR = 3;
/** Namespaces, mounts and bwrap on a machine that is busy. */
const BEGIN_MS = 30_000;
const MAX_COMPLAINT = 4_096;

export class StartedProgram {
  readonly #child: ChildProcess;
  readonly #readers: readonly LineReader[];
  readonly #begin: Duplex | undefined;
  readonly #ready = Promise.withResolvers<void>();
  #hasBegun = false;
  #hasExited = false;
  #complaint = '';
  readonly pid: number;
  /** Its processes may have outlived it. */
  readonly exited: Promise<ProgramExit>;

  private constructor(child: ChildProcess, { onLine }: Pick<WorkloadSpec, 'onLine'>) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    const { promise, resolve } = Promise.withResolvers<ProgramExit>();
    this.exited = promise;
    child.on('error', ({ message }) => {
      this.#complaint ||= message;
      if (child.pid === undefined) resolve({ code: null, signal: null });
    });
    child.on('exit', (code, signal) => resolve({ code, signal }));
    void promise.then(() => {
      this.#hasExited = true;
      this.#ready.reject(new Error('it ended'));
    });
    this.#ready.promise.catch(() => undefined);
    // Before the program begins, it is what isolates it that prints.
    const stdout = readLines(child.stdout, (text, isTruncated) => onLine('stdout', text, isTruncated));
    const stderr = readLines(child.stderr, (text, isTruncated) => {
      if (this.#hasBegun) onLine('stderr', text, isTruncated);
      else this.#complaint = `${this.#complaint}${text}\n`.slice(-MAX_COMPLAINT);
    });
    this.#readers = [stdout, stderr].flatMap((one) => one ?? []);
    this.#begin = streamsOf(child)[BEGIN_DESCRIPTOR] as Duplex | undefined;
    this.#begin?.on('error', () => undefined).once('data', () => this.#ready.resolve());
  }

  /** The program waits for `begin`. Rejects with an Error if no process can be started. */
  static async start(launch: Launch, spec: Pick<WorkloadSpec, 'input' | 'onLine'>): Promise<StartedProgram> {
    const [file = '', ...args] = launch.command;
    const texts = launch.descriptors.map((one) => (typeof one === 'number' ? undefined : one.text));
    const given = launch.descriptors.map((one) => (typeof one === 'number' ? one : 'pipe'));
    const child = spawn(file, args, {
      cwd: '/',
      env: systemEnvironment,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', ...given],
      // A session of its own: what the terminal of this process sends is not meant for it.
      detached: true,
    });
    const program = new StartedProgram(child, spec);
    if (child.pid === undefined) {
      await program.exited;
      throw new Error(`the program cannot be started: ${program.#complaint}`);
    }
    const streams = streamsOf(child);
    for (const [index, text] of texts.entries())
      if (text !== undefined) send(streams[BEGIN_DESCRIPTOR + 1 + index], text);
    send(streams[INPUT_DESCRIPTOR], spec.input ?? '');
    return program;
  }

  /** Rejects with an Error of the last line of what isolates it, if that fails. */
  async begin(beginning: Beginning): Promise<void> {
    try {
      await within(this.#ready.promise, BEGIN_MS, 'it does not begin');
    } catch (error) {
      if (this.#hasExited) await this.endOutput();
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(lastLine(this.#complaint) || reason, { cause: error });
    }
    this.#hasBegun = true;
    this.#begin?.resume().end(encodeBeginning(beginning));
  }

  /** Every line of processes that have ended is reported then. */
  async endOutput(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.end()));
    for (const stream of streamsOf(this.#child)) stream?.destroy();
  }
}

/** Node makes no streams when no descriptor is left for them. */
function streamsOf(child: ChildProcess): readonly (Readable | Writable | null | undefined)[] {
  const { stdio }: { readonly stdio?: ChildProcess['stdio'] } = child;
  return stdio ?? [];
}

function readLines(
  stream: Readable | null | undefined,
  take: (text: string, isTruncated: boolean) => void,
): LineReader | undefined {
  return stream === null || stream === undefined
    ? undefined
    : new LineReader(stream, ({ text, isTruncated }) => take(text, isTruncated));
}

/** Its reader may leave early, or write something back, which nobody reads. */
function send(stream: unknown, content: string | Uint8Array): void {
  const writable = stream as Writable | null | undefined;
  writable?.on('error', () => undefined).end(content);
}
