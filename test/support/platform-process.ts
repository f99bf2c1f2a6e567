// `sallyport platform` as a real process, on a given database or in a data directory of its own. A test may kill it before
// it is ready.
import type { ClientConfig } from 'pg';
import { type Finished, type LogRecord, program, runToEnd, SpawnedProcess } from './spawned-process.ts';

export type PlatformOptions = {
  readonly dataDirectory: string;
  /** An external PostgreSQL: as the runtime role, and as the owner of the tables. */
  readonly database?: { readonly url: string; readonly ownerUrl: string };
  readonly env?: Readonly<Record<string, string>>;
  /** Modules to load before it. */
  readonly preloads?: readonly string[];
  /** In place of the bundle: the launcher of this checkout, whose files isolated programs are given. */
  readonly launcher?: string;
};

export type PlatformProcess = AsyncDisposable & {
  readonly process: SpawnedProcess;
  /** Resolves when it accepts requests; rejects when it ends before that. */
  readonly ready: Promise<{ readonly port: number; readonly record: LogRecord; readonly ms: number }>;
};

export function startPlatform(options: PlatformOptions): PlatformProcess {
  const startedMs = performance.now();
  const imports = (options.preloads ?? []).flatMap((file) => ['--import', file]);
  const child = new SpawnedProcess(process.execPath, [...imports, options.launcher ?? program, 'platform'], {
    env: environmentOf(options),
  });
  const ready = child
    .record(({ msg }) => msg === 'ready')
    .then((record) => ({ port: portOf(record), record, ms: performance.now() - startedMs }));
  // A test that kills it at once does not wait for `ready`.
  ready.catch(() => undefined);
  return { process: child, ready, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

/** The first organization, with `key` as the key of its administrator. */
export async function initPlatform(options: PlatformOptions, key: string): Promise<void> {
  const { code, stderr, stdout } = await runSallyport(['platform', 'init'], {
    ...options,
    env: { ...options.env, SALLYPORT_BOOTSTRAP_API_KEY: key },
  });
  if (code !== 0) throw new Error(`sallyport platform init ended with ${code}\n${stdout}\n${stderr}`);
}

/** Runs a command on the platform's database until it ends. */
export function runSallyport(args: readonly string[], options: PlatformOptions): Promise<Finished> {
  return runToEnd(process.execPath, [program, ...args], { env: environmentOf(options) });
}

/** The output for an intact log; throws for any other result. */
export async function verifyAuditLog(options: PlatformOptions): Promise<string> {
  const { code, stdout, stderr } = await runSallyport(['audit', 'verify'], options);
  if (code !== 0 || stderr !== '')
    throw new Error(`sallyport audit verify ended with ${code}\n${stdout}\n${stderr}`);
  return stdout.trim();
}

function environmentOf({ dataDirectory, database, env }: PlatformOptions): Record<string, string> {
  return {
    SALLYPORT_PLATFORM_LISTEN: '127.0.0.1:0',
    SALLYPORT_PLATFORM_DATA_DIR: dataDirectory,
    // A test that wants isolated boxes says so: `init` would look at the machine each time.
    SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: 'attached',
    ...(database === undefined
      ? {}
      : { DATABASE_URL: database.url, SALLYPORT_PLATFORM_DATABASE_OWNER_URL: database.ownerUrl }),
    ...env,
  };
}

function portOf(record: LogRecord): number {
  const [, port] = /:(\d+)$/.exec(String(record['api'] ?? record['url'] ?? record['listen'])) ?? [];
  if (port === undefined) throw new Error(`the ready line names no address: ${JSON.stringify(record)}`);
  return Number(port);
}

/** As a value of DATABASE_URL. */
export function toDatabaseUrl({ user, password, host, database }: ClientConfig): string {
  const query = new URLSearchParams({ host: host ?? '', user: user ?? '', password: String(password) });
  return `postgresql:///${database}?${query}`;
}
