// The real command with a secret of every kind, each provided in its own way, and a record of every byte of its output: to
// the agent, to the operator, in logs and files, and in what the system shows of a process.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { program, projectRoot, SpawnedProcess } from '../support/spawned-process.ts';
import { type CanaryPeers, createCanaryPeers, publicAuthority } from './canary-peers.ts';
import { type CanaryValues, createCanaryValues } from './canary-values.ts';

export type CanaryScene = AsyncDisposable & {
  readonly values: CanaryValues;
  readonly peers: CanaryPeers;
  readonly stateDir: string;
  /** The operator's file for `default`, read at the start and by SIGHUP. */
  readonly proxyConfigFile: string;
  readonly secretsDir: string;
  /** The output so far, by sink. Pieces of one sink are joined. */
  readonly sinks: ReadonlyMap<string, Buffer>;
  keep(sink: string, text: string | Buffer): void;
  /** Requests and statuses, in order, for example `opaque.test/echo 302`. */
  readonly statuses: string[];
  /** Starts the proxy and waits until it is ready. */
  start(options?: StartOptions): Promise<CanaryProxy>;
  /** Runs a command that must fail, to its end; returns its exit code. */
  fail(args: readonly string[], env: Readonly<Record<string, string>>): Promise<number | null>;
};

export type StartOptions = { readonly withProxyConfig?: boolean };

export type CanaryProxy = AsyncDisposable & {
  readonly process: SpawnedProcess;
  readonly port: number;
  readonly adminPort: number;
  readonly caPem: string;
  /** SIGTERM, and its output to the end. */
  stop(): Promise<number | null>;
};

export async function createCanaryScene(): Promise<CanaryScene> {
  const values = createCanaryValues();
  const peers = await createCanaryPeers(values);
  const scratch = await createScratch();
  const files = await writeFiles(scratch, values);
  const sinks = new Map<string, Buffer>();
  const running = new Set<SpawnedProcess>();
  const keep = (sink: string, text: string | Buffer): void => {
    sinks.set(
      sink,
      Buffer.concat([sinks.get(sink) ?? Buffer.alloc(0), Buffer.from(text), Buffer.from('\n')]),
    );
  };
  const spawn = (args: readonly string[], env: Readonly<Record<string, string>>): SpawnedProcess => {
    const child = new SpawnedProcess(process.execPath, [...PRELOADS, program, ...args], {
      env: { ...files.env, ...secretsOf(values), ...env },
    });
    running.add(child);
    return child;
  };
  const finish = async (child: SpawnedProcess): Promise<number | null> => {
    const { code } = await child.exited;
    keep('standard output', child.stdout);
    keep('standard error', child.stderr);
    for (const record of child.records)
      if (record['msg'] === 'exchange' || record['msg'] === 'admin') keep('records', JSON.stringify(record));
    return code;
  };
  return {
    values,
    peers,
    sinks,
    keep,
    statuses: [],
    ...files,
    async start({ withProxyConfig = true } = {}) {
      const child = spawn(
        ['proxy'],
        withProxyConfig ? { SALLYPORT_PROXY_CONFIG: files.proxyConfigFile } : {},
      );
      const ready = await child.record(({ msg }) => msg === 'ready');
      await keepProcess(child.pid, keep);
      return {
        process: child,
        port: portOf(ready['proxy']),
        adminPort: portOf(ready['admin']),
        caPem: await readFile(join(files.stateDir, 'public', 'ca.pem'), 'utf8'),
        async stop() {
          await keepProcess(child.pid, keep);
          child.kill('SIGTERM');
          const code = await finish(child);
          await keepFiles(files.stateDir, keep);
          await keepFiles(files.temporary, keep);
          return code;
        },
        [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
      };
    },
    fail: (args, env) => finish(spawn(args, env)),
    async [Symbol.asyncDispose]() {
      for (const child of running) await child[Symbol.asyncDispose]();
      await peers[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const PRELOADS: readonly string[] = ['support/name-table.ts', 'e2e/canary-lookup.ts'].flatMap((file) => [
  '--import',
  join(projectRoot, 'test', file),
]);

type Files = {
  readonly stateDir: string;
  readonly secretsDir: string;
  readonly proxyConfigFile: string;
  readonly temporary: string;
  readonly env: Readonly<Record<string, string>>;
};

async function writeFiles(scratch: Scratch, values: CanaryValues): Promise<Files> {
  const make = async (name: string): Promise<string> => {
    const directory = join(scratch.path, name);
    await mkdir(directory, { mode: 0o700 });
    return directory;
  };
  const [stateDir, secretsDir, temporary] = [await make('state'), await make('secrets'), await make('tmp')];
  await writeFile(join(secretsDir, 'FILE_SECRET'), values.fileSecret);
  return {
    stateDir,
    secretsDir,
    temporary,
    proxyConfigFile: await scratch.write('proxy-config.json', {}),
    env: {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: stateDir,
      SALLYPORT_SECRETS_DIR: secretsDir,
      SALLYPORT_AUTH_TOKEN_FILE: await scratch.write('proxy-token', values.proxyToken),
      SALLYPORT_UPSTREAM_CA: await scratch.write('upstream-ca.pem', publicAuthority.certificatePem),
      SALLYPORT_LOG_LEVEL: 'trace',
      TMPDIR: temporary,
    },
  };
}

function secretsOf({ adminToken, stateKey, variableSecret }: CanaryValues): Record<string, string> {
  return {
    SALLYPORT_ADMIN_TOKEN: adminToken,
    SALLYPORT_STATE_KEY: stateKey.toString('base64'),
    SALLYPORT_SECRET_VARIABLE_SECRET: variableSecret,
  };
}

/** What the system shows to every process of the same user. */
async function keepProcess(pid: number, keep: CanaryScene['keep']): Promise<void> {
  for (const name of ['environ', 'cmdline', 'comm', 'status'])
    keep(`/proc/PID/${name}`, await readFile(`/proc/${pid}/${name}`));
}

async function keepFiles(directory: string, keep: CanaryScene['keep']): Promise<void> {
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) keep(`file ${relative(directory, path)}`, await readFile(path));
  }
}

function portOf(url: unknown): number {
  return Number(new URL(String(url)).port);
}
