// `sallyport agent-server` as a real process, with a deployment of the test, on a database of the test.
import { closeSync, openSync, unlinkSync, writeFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TestDatabase } from './platform-database.ts';
import { type LogRecord, program, projectRoot, SpawnedProcess } from './spawned-process.ts';

/** Files by their paths, with the packages of this project; returns the path of `langgraph.json`. */
export async function writeDeployment(
  directory: string,
  config: object,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  await symlink(join(projectRoot, 'node_modules'), join(directory, 'node_modules')).catch(() => undefined);
  const path = join(directory, 'langgraph.json');
  await writeFile(path, JSON.stringify(config));
  return path;
}

export type AgentProcess = AsyncDisposable & {
  readonly process: SpawnedProcess;
  /** Resolves when it accepts requests; rejects when it ends before that. */
  readonly ready: Promise<{ readonly url: string; readonly record: LogRecord }>;
};

export function startAgentServer(
  config: string,
  given: {
    readonly dataDirectory: string;
    /** Without it, an embedded one. */
    readonly database?: Pick<TestDatabase, 'url' | 'ownerUrl'>;
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    /** Of an instance of a deployment, as the text that it reads; it listens at this path. */
    readonly instance?: { readonly input: string; readonly socketPath: string };
    /** In place of the one that tests start. */
    readonly program?: string | undefined;
  },
): AgentProcess {
  const { dataDirectory, database, args = [], env = {}, instance } = given;
  const descriptor = instance && openInput(`${instance.socketPath}.input`, instance.input);
  const child = new SpawnedProcess(
    process.execPath,
    [given.program ?? program, 'agent-server', '--config', config, '--data-dir', dataDirectory, ...args],
    {
      env: {
        SALLYPORT_AGENT_LISTEN: '127.0.0.1:0',
        ...(database && {
          DATABASE_URL: database.url,
          SALLYPORT_PLATFORM_DATABASE_OWNER_URL: database.ownerUrl,
        }),
        ...(instance && {
          SALLYPORT_AGENT_INPUT: '3',
          SALLYPORT_AGENT_LISTEN: `unix:${instance.socketPath}`,
        }),
        ...env,
      },
      ...(descriptor !== undefined && { descriptors: [descriptor] }),
    },
  );
  if (descriptor !== undefined) closeSync(descriptor);
  const ready = child
    .record(({ msg }) => msg === 'ready')
    .then((record) => ({ url: String(record['api']), record }));
  // A test of a start that fails does not wait for it.
  ready.catch(() => undefined);
  return { process: child, ready, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

/** A file without a name by the time the process reads it. */
function openInput(file: string, text: string): number {
  writeFileSync(file, text);
  const descriptor = openSync(file, 'r');
  unlinkSync(file);
  return descriptor;
}
