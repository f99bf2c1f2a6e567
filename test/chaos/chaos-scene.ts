// The scene of every fault: one real process of the proxy, a host that fails, a host and a callback that keep working, and
// a collection of every byte of output. The process can be restarted with the same state.
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { type AskAdmin, createAdminClient } from '../support/admin-client.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { program, projectRoot, SpawnedProcess } from '../support/spawned-process.ts';
import type { Route } from './proxy-request.ts';
import { type ChaosAuthority, createChaosAuthority } from './chaos-authority.ts';
import { type ChaosSecrets, createChaosSecrets } from './chaos-secrets.ts';
import { createFailingHost, type FailingHost } from './failing-host.ts';

export type SceneSettings = {
  readonly env?: Readonly<Record<string, string>>;
  /** Arguments of Node before the program. */
  readonly flags?: readonly string[];
  /** The system resolves names instead of a table. */
  readonly hasRealLookup?: boolean;
};

export type Sidecar = Route &
  AsyncDisposable & { readonly process: SpawnedProcess; readonly admin: AskAdmin; readonly startMs: number };

export type StartOptions = SceneSettings & {
  /** The URL of the callback for `*.sealed.test`. */
  readonly sealedCallback?: string;
  /** A command that executes the rest of its arguments in its place. */
  readonly through?: readonly string[];
  readonly readyLine?: (child: SpawnedProcess) => Promise<Readonly<Record<string, unknown>>>;
};

export type ChaosScene = AsyncDisposable & {
  readonly secrets: ChaosSecrets;
  readonly authority: ChaosAuthority;
  readonly host: FailingHost;
  readonly bystanderHost: FailingHost;
  readonly callback: CallbackEndpoint;
  readonly scratch: Scratch;
  readonly stateDir: string;
  /** The last process that was started. */
  readonly sidecar: Sidecar;
  /** `name:port` of the failing host; the name defaults to `failing.test`. */
  at(name?: string): string;
  start(options?: StartOptions): Promise<Sidecar>;
  /** Starts a process that may not become ready. */
  launch(options?: StartOptions): SpawnedProcess;
  collect(bytes: string): void;
  /** For a log that is a file. */
  collectFile(path: string): void;
  /** All output: to clients, to the log, into sealed files. */
  allOutput(): Promise<Buffer>;
};

/** Names that were not requested yet. */
export const FLIPPED: readonly string[] = ['a', 'b', 'c', 'd'].map((name) => `${name}.dns.test`);

export const FAILING_NAMES: readonly string[] = [
  'failing.test',
  'cold.test',
  ...['500', 'timeout', 'slow', 'malformed', 'oversize'].map((name) => `${name}.called.test`),
  'host.sealed.test',
  'fresh.dns.test',
  ...FLIPPED,
];

/** Creates the scene without starting a process. */
export async function createChaosScene(settings: SceneSettings = {}): Promise<ChaosScene> {
  const secrets = createChaosSecrets();
  const authority = createChaosAuthority();
  const isCredential = (value: string): boolean =>
    value === `Bearer ${secrets.token}` || value === `Bearer ${secrets.minted}`;
  const host = await createFailingHost({
    authority,
    names: FAILING_NAMES,
    isCredential,
    endsConnections: true,
  });
  const bystanderHost = await createFailingHost({
    authority,
    names: ['bystander.test'],
    isCredential,
    endsConnections: false,
  });
  const callback = await createCallbackEndpoint(goodResponse(secrets));
  const scratch = await createScratch();
  const stateDir = join(scratch.path, 'state');
  await mkdir(stateDir, { mode: 0o700 });
  const started: SpawnedProcess[] = [];
  const collected: string[] = [];
  const collect = (bytes: string): void => void collected.push(bytes);
  const collectedFiles: string[] = [];
  const files = await writeFiles(scratch, secrets, authority.rootsPem);
  let sidecar: Sidecar | undefined;

  function launch(options: StartOptions = settings): SpawnedProcess {
    const preloads = options.hasRealLookup ? [] : ['--import', nameTable];
    const whole = [process.execPath, ...(options.flags ?? []), ...preloads, program, 'proxy'];
    const [command = '', ...args] = [...(options.through ?? []), ...whole];
    const child = new SpawnedProcess(command, args, {
      env: { ...files, SALLYPORT_STATE_DIR: stateDir, ...settings.env, ...options.env },
    });
    started.push(child);
    return child;
  }

  return {
    secrets,
    authority,
    host,
    bystanderHost,
    callback,
    scratch,
    stateDir,
    launch,
    collect,
    collectFile: (path) => void collectedFiles.push(path),
    get sidecar() {
      if (!sidecar) throw new Error('no process was started');
      return sidecar;
    },
    at: (name = 'failing.test') => `${name}:${host.origin.port}`,
    async start(options = settings) {
      const sealed = options.sealedCallback ?? 'https://nowhere.test/credentials';
      await scratch.write('proxy-config.json', documentOf(secrets, { callback: callback.url, sealed }));
      const startedMs = performance.now();
      const child = launch(options);
      const ready = await (options.readyLine?.(child) ?? child.record(({ msg }) => msg === 'ready'));
      sidecar = {
        process: child,
        port: Number(new URL(String(ready['proxy'])).port),
        caPem: await readFile(String(ready['ca']), 'utf8'),
        admin: createAdminClient(String(ready['admin']), secrets.adminToken),
        collect,
        startMs: performance.now() - startedMs,
        [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
      };
      return sidecar;
    },
    async allOutput() {
      const logs = started.flatMap(({ stdout, stderr }) => [Buffer.from(stdout), Buffer.from(stderr)]);
      const read = await Promise.all(collectedFiles.map((path) => readFile(path)));
      return Buffer.concat([
        ...read,
        ...collected.map((text) => Buffer.from(text, 'latin1')),
        ...logs,
        ...(await sealed(stateDir)),
      ]);
    },
    async [Symbol.asyncDispose]() {
      for (const child of started) await child[Symbol.asyncDispose]();
      for (const peer of [host, bystanderHost, callback]) await peer[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const nameTable: string = join(projectRoot, 'test', 'support', 'name-table.ts');

export function goodResponse({ minted }: ChaosSecrets): object {
  return { headers: { Authorization: `Bearer ${minted}` } };
}

/** Writes the input files; returns the environment variables for every start. */
async function writeFiles(
  scratch: Scratch,
  secrets: ChaosSecrets,
  rootsPem: string,
): Promise<Readonly<Record<string, string>>> {
  return {
    SALLYPORT_LISTEN: '127.0.0.1:0',
    SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
    SALLYPORT_PROXY_CONFIG: await scratch.write('proxy-config.json', {}),
    SALLYPORT_UPSTREAM_CA: await scratch.write('upstream-ca.pem', rootsPem),
    SALLYPORT_SECRETS_FILE: await scratch.write('secrets.env', `TOKEN=${secrets.token}\n`),
    SALLYPORT_ADMIN_TOKEN_FILE: await scratch.write('admin-token', secrets.adminToken),
    SALLYPORT_STATE_KEY_FILE: await scratch.write('state.key', secrets.stateKey),
  };
}

function documentOf(
  { opaque, callbackKey }: ChaosSecrets,
  peers: { readonly callback: string; readonly sealed: string },
): unknown {
  const entry = (name: string, url: string): unknown => ({
    name,
    match_hosts: [`*.${name}.test`],
    url,
    ttl_seconds: 60,
    request_headers: [{ name: 'X-Callback-Key', type: 'opaque', value: callbackKey }],
  });
  return {
    rules: [
      {
        name: 'hosts',
        match_hosts: ['failing.test', 'cold.test', 'bystander.test', '*.dns.test'],
        headers: [
          { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' },
          { name: 'X-Opaque', type: 'opaque', value: opaque },
        ],
      },
    ],
    callbacks: [entry('called', peers.callback), entry('sealed', peers.sealed)],
    access_control: { deny_list: ['denied.test'] },
  };
}

/** The sealed files of the state. The key files beside them are protected by the file system. */
async function sealed(directory: string): Promise<readonly Buffer[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.sealed'));
  return Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name))));
}
