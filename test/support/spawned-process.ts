// Programs as real processes: the sallyport command and the clients that use it. Every child gets a clean environment, because
// proxies and CA bundles of a developer's machine could change the result of a test.
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createScratch } from './scratch.ts';

export type LogRecord = Readonly<Record<string, unknown>>;
export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };
export type SpawnOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string;
  /** Descriptors above 2, in order from 3. */
  readonly descriptors?: readonly number[];
  /** Receives the exchange records if there are too many to store; then standard output is not stored either. */
  readonly onExchange?: ((record: LogRecord) => void) | undefined;
};

export const projectRoot: string = dirname(dirname(import.meta.dirname));
/** The launcher of the checkout, which runs the sources. */
export const launcher: string = join(projectRoot, 'bin', 'sallyport.js');
/** What tests start as `sallyport`: the launcher of the bundle that program-setup.ts made of these sources. */
export const program: string = process.env['SALLYPORT_TEST_PROGRAM'] ?? launcher;

// That of the bundle is beside it and is removed with it.
const compileCache: string =
  program === launcher
    ? join(projectRoot, 'node_modules', '.cache', 'compile')
    : join(dirname(dirname(program)), 'compile-cache');

/** The variables of a bare login shell, without any that affect TLS, proxies or package managers. */
export function cleanEnvironment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    HOME: tmpdir(),
    TMPDIR: tmpdir(),
    LANG: 'C.UTF-8',
    // Hundreds of processes of one program: they share compiled code.
    NODE_COMPILE_CACHE: compileCache,
    ...extra,
  };
}

export class SpawnedProcess {
  readonly #child: ChildProcess;
  readonly #onExchange: SpawnOptions['onExchange'];
  readonly #waiting = new Set<() => void>();
  readonly #records: LogRecord[] = [];
  #stdout = '';
  #stderr = '';
  /** Resolves when the process has exited and its output was read to the end. */
  readonly exited: Promise<Exit>;

  constructor(command: string, args: readonly string[], options: SpawnOptions = {}) {
    this.#onExchange = options.onExchange;
    this.#child = spawn(command, args, {
      cwd: options.cwd ?? projectRoot,
      env: cleanEnvironment(options.env),
      stdio: ['pipe', 'pipe', 'pipe', ...(options.descriptors ?? [])],
    });
    const { promise, resolve, reject } = Promise.withResolvers<Exit>();
    this.exited = promise;
    // A missing program may be detected when nothing awaits `exited`; a later await still gets the error.
    promise.catch(() => undefined);
    this.#child.on('error', reject);
    this.#child.on('close', (code, signal) => {
      resolve({ code, signal });
      this.#notify();
    });
    this.#child.stdin?.on('error', () => undefined);
    this.#child.stdin?.end(options.input ?? '');
    this.#readLines(this.#child.stdout, (text) => {
      if (!this.#onExchange) this.#stdout += text;
    });
    this.#readLines(this.#child.stderr, (text) => (this.#stderr += text));
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`${this.#child.spawnfile} did not start`);
    return this.#child.pid;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Every line of both streams that is a JSON object, in order of arrival. */
  get records(): readonly LogRecord[] {
    return this.#records;
  }

  /** The first past or future record that the predicate accepts; rejects when the process exits without it. */
  record(predicate: (record: LogRecord) => boolean): Promise<LogRecord> {
    return this.#awaitThat(() => this.#records.find(predicate));
  }

  /** Resolves with standard output once the predicate accepts it; rejects when the process ends before. */
  output(predicate: (text: string) => boolean): Promise<string> {
    return this.#awaitThat(() => (predicate(this.#stdout) ? this.#stdout : undefined));
  }

  /** Resolves with standard error once the predicate accepts it; rejects when the process ends before. */
  errorOutput(predicate: (text: string) => boolean): Promise<string> {
    return this.#awaitThat(() => (predicate(this.#stderr) ? this.#stderr : undefined));
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Stops reading standard output until `readOutput`, as when a log collector hangs. */
  holdOutput(): void {
    this.#child.stdout?.pause();
  }

  readOutput(): void {
    this.#child.stdout?.resume();
  }

  /** Resident memory and open descriptors, read from outside (Linux). */
  usage(): { readonly residentBytes: number; readonly descriptors: number } {
    const [, kibibytes = ''] =
      /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8')) ?? [];
    return {
      residentBytes: Number(kibibytes) * 1024,
      descriptors: readdirSync(`/proc/${this.pid}/fd`).length,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exited.catch(() => undefined);
  }

  #readLines(stream: ChildProcess['stdout'], keep: (text: string) => void): void {
    let unfinished = '';
    stream?.setEncoding('utf8').on('data', (text: string) => {
      keep(text);
      const lines = (unfinished + text).split('\n');
      unfinished = lines.pop() ?? '';
      for (const line of lines) this.#keepRecord(line);
      this.#notify();
    });
  }

  #keepRecord(line: string): void {
    if (!line.startsWith('{')) return;
    try {
      const record: LogRecord = JSON.parse(line);
      if (this.#onExchange && record['msg'] === 'exchange') this.#onExchange(record);
      else this.#records.push(record);
    } catch {
      // Not a record, but a line that begins with a brace. It remains in stdout or stderr.
    }
  }

  #awaitThat<T>(find: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = find();
        const gone = this.#child.exitCode !== null || this.#child.signalCode !== null;
        if (found === undefined && !gone) return;
        this.#waiting.delete(look);
        if (found !== undefined) resolve(found);
        else reject(new Error(`exited before the awaited event\n${this.#stdout}\n${this.#stderr}`));
      };
      this.#waiting.add(look);
      look();
    });
  }

  #notify(): void {
    for (const look of this.#waiting) look();
  }
}

export type Finished = Exit & { readonly stdout: string; readonly stderr: string };

/** Runs a program to its end. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  options?: SpawnOptions,
): Promise<Finished> {
  await using child = new SpawnedProcess(command, args, options);
  const exit = await child.exited;
  return { ...exit, stdout: child.stdout, stderr: child.stderr };
}

export type SpawnedSallyport = AsyncDisposable & {
  readonly process: SpawnedProcess;
  readonly port: number;
  /** The path of the proxy's CA certificate, which a client must trust. */
  readonly caFile: string;
};

/** `sallyport proxy` on a free port with a state directory of its own; names ending in `.test` resolve to 127.0.0.1. */
export async function spawnSallyport(options: {
  readonly proxyConfig: unknown;
  /** `launcher`: the sources. */
  readonly program?: string;
  readonly upstreamCaPem?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** Modules to preload in addition to the name table. */
  readonly preloads?: readonly string[];
  /** Descriptors above 2, in order from 3. */
  readonly descriptors?: readonly number[];
  readonly onExchange?: SpawnOptions['onExchange'];
}): Promise<SpawnedSallyport> {
  const scratch = await createScratch();
  const proxyConfig = await scratch.write('proxy-config.json', options.proxyConfig);
  const upstreamCa = await scratch.write('upstream-ca.pem', options.upstreamCaPem ?? '');
  const preloads = [join(import.meta.dirname, 'name-table.ts'), ...(options.preloads ?? [])];
  const imports = preloads.flatMap((file) => ['--import', file]);
  const child = new SpawnedProcess(
    process.execPath,
    [...imports, options.program ?? program, 'proxy', '--proxy-config', proxyConfig, ...(options.args ?? [])],
    {
      env: {
        SALLYPORT_LISTEN: '127.0.0.1:0',
        SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
        SALLYPORT_STATE_DIR: scratch.path,
        ...(options.upstreamCaPem === undefined ? {} : { SALLYPORT_UPSTREAM_CA: upstreamCa }),
        ...options.env,
      },
      descriptors: options.descriptors ?? [],
      onExchange: options.onExchange,
    },
  );
  const dispose = async (): Promise<void> => {
    await child[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  };
  try {
    const ready = await child.record((record) => record['msg'] === 'ready');
    const caFile = String(ready['ca']);
    return { process: child, port: portOf(ready['proxy']), caFile, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function portOf(address: unknown): number {
  const [, port] = /:(\d+)$/.exec(String(address)) ?? [];
  if (port === undefined) throw new Error(`the ready line names no proxy address: ${String(address)}`);
  return Number(port);
}
