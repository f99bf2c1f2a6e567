// One sidecar: a `sallyport proxy` that is a child of this process, ends with it, and writes its records into a pipe.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { isObject, parseJsonDocument } from '../../base/json/json-document.ts';
import type { Log } from '../../base/log.ts';
import { SANDBOX_ID } from '../../base/sandbox-id.ts';
import type { RecordBook, RecordWriter } from './record-book.ts';
import { SidecarAdmin, readText } from './sidecar-admin.ts';
import { type SidecarPlace, readCaPem, writeSidecarFiles } from './sidecar-config.ts';

export type SidecarProgram = {
  /** The command that `proxy` is appended to. */
  readonly command: readonly string[];
  /** Of the operator, for all sidecars. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string>>;
};

export type SidecarOptions = {
  readonly program: SidecarProgram;
  readonly place: SidecarPlace;
  readonly records: RecordBook;
  readonly log: Log;
};

/** Longer than any line that a sidecar writes. */
const MAX_LINE_CHARS = 256 * 1024;
const START_MS = 30_000;
const END_MS = 5_000;

export class SidecarProcess {
  readonly admin: SidecarAdmin;
  readonly caPem: string;
  readonly pid: number;
  /** Resolves when the process has ended; its last records may still be read. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #mainUrl: string;
  #caBundle: Promise<string> | undefined;

  private constructor(
    child: ChildProcess,
    mainUrl: string,
    { admin, caPem, ended }: Pick<SidecarProcess, 'admin' | 'caPem' | 'ended'>,
  ) {
    this.#child = child;
    this.#mainUrl = mainUrl;
    this.admin = admin;
    this.caPem = caPem;
    this.pid = child.pid ?? 0;
    this.ended = ended;
  }

  /** Throws an Error with the last line of its standard error if it does not start. */
  static async start({ program, place, records, log }: SidecarOptions): Promise<SidecarProcess> {
    const { configFile, adminToken } = await writeSidecarFiles(place, program.config);
    const [file = '', ...args] = program.command;
    const child = spawn(file, [...args, 'proxy', '--config', configFile], {
      cwd: '/',
      env: program.env,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { promise: ready, resolve, reject } = Promise.withResolvers<string>();
    let complaint = '';
    child.stderr?.on('data', (text: Buffer) => (complaint = `${complaint}${text.toString()}`.slice(-2_000)));
    const writer: RecordWriter = records.createWriter(() => child.stdout?.resume());
    readLines(
      child,
      () => writer.isFull,
      (line) => {
        if (line.endsWith('"msg":"exchange"}')) writeRecord(writer, line);
        else if (line.endsWith('"msg":"ready"}')) resolve(proxyOf(line));
        else reportLine(log, line);
      },
    );
    const ended = new Promise<void>((end) => {
      child.once('error', (error) => {
        if (child.pid === undefined) complaint = error.message;
        if (child.pid === undefined) end();
      });
      child.once('exit', () => end());
      // Later than the exit: its last line says why it did not start.
      child.once('close', () => reject(new Error(complaint.trim().split('\n').at(-1) || 'it ended')));
    });
    // Nobody waits for it any more once it was ready.
    ready.catch(() => undefined);
    const late = setTimeout(() => child.kill('SIGKILL'), START_MS);
    try {
      const mainUrl = await ready;
      const admin = new SidecarAdmin(place.socketPath, adminToken);
      return new SidecarProcess(child, mainUrl, { admin, caPem: await readCaPem(place.directory), ended });
    } catch (error) {
      child.kill('SIGKILL');
      await ended;
      throw error;
    } finally {
      clearTimeout(late);
    }
  }

  /** Hands a listener over for this sandbox and returns the reference by which it is used. */
  async handOver(handle: object, sandbox: string): Promise<string> {
    const reference = randomBytes(16).toString('base64url');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const message = { type: 'listener', reference, sandbox };
    this.#child.send(message, handle as never, { keepOpen: true }, (error) =>
      error ? reject(error) : resolve(),
    );
    await promise;
    return reference;
  }

  /** The certificate of its CA, and the roots of the system. */
  caBundle(): Promise<string> {
    // The main listener serves it to everybody, and nothing else without the token that nobody has.
    this.#caBundle ??= readText(`${this.#mainUrl}/ca-bundle.pem`).catch((error: unknown) => {
      this.#caBundle = undefined;
      throw error;
    });
    return this.#caBundle;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resolves when it has ended. */
  async end(): Promise<void> {
    this.#child.kill('SIGTERM');
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), END_MS);
    await this.ended;
    clearTimeout(limit);
  }
}

/** The URL of the main listener in the line `ready`. */
function proxyOf(line: string): string {
  const parsed = parseJsonDocument(line);
  return parsed.ok && isObject(parsed.value) ? String(parsed.value['proxy']) : '';
}

/** A reader that does not keep up is not sent more: the pipe fills, and the sidecar refuses exchanges. */
function readLines({ stdout }: ChildProcess, isFull: () => boolean, take: (line: string) => void): void {
  let rest = '';
  stdout?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = (lines.pop() ?? '').slice(0, MAX_LINE_CHARS);
    for (const line of lines) take(line);
    if (isFull()) stdout.pause();
  });
}

/** `{"level":…,"time":…,"sandbox":ID,…,"msg":"exchange"}` without level and message. */
function writeRecord(writer: RecordWriter, line: string): void {
  const parsed = parseJsonDocument(line);
  if (!parsed.ok || !isObject(parsed.value)) return;
  const { level: _level, msg: _msg, ...record } = parsed.value;
  const { sandbox } = record;
  // `default` has no clients but those without the token of the main listener.
  if (typeof sandbox !== 'string' || sandbox === 'default' || !SANDBOX_ID.test(sandbox)) return;
  writer.write(sandbox, JSON.stringify(record));
}

function reportLine(log: Log, line: string): void {
  if (!/^\{"level":"(?:warn|error|fatal)"/.test(line)) return;
  const parsed = parseJsonDocument(line);
  if (parsed.ok) log.warn({ sidecar: parsed.value }, 'a sidecar reports');
}
