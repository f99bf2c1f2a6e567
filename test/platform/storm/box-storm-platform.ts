// A platform as a process of its own, with an embedded database and the box host that it starts, for a storm of boxes.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { runToEnd } from '../../support/spawned-process.ts';
import { createScratch } from '../../support/scratch.ts';
import { hostPid, ended } from '../../box-host/box-host-scene.ts';

const sallyport = join(import.meta.dirname, '..', '..', '..', 'bin', 'sallyport.js');

export type BoxPlatform = AsyncDisposable & {
  /** Of the box host. */
  readonly directory: string;
  readonly pid: number;
  /** Starts it; after a kill, again. */
  start(): Promise<void>;
  /** The status and the document of the response; status 0: the platform is away. */
  ask(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>;
};

export async function createBoxPlatform(
  runtime: string,
  env: Readonly<Record<string, string>> = {},
): Promise<BoxPlatform> {
  const scratch = await createScratch();
  // Under root the database runs as another user.
  await chmod(scratch.path, 0o711);
  const key = mintKey('service').text;
  const variables = {
    PATH: process.env['PATH'] ?? '',
    HOME: scratch.path,
    SALLYPORT_PLATFORM_LISTEN: '127.0.0.1:0',
    SALLYPORT_PLATFORM_DATA_DIR: join(scratch.path, 'data'),
    SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: runtime,
    SALLYPORT_PLATFORM_SANDBOXES_MAX_BOXES: '1000',
    SALLYPORT_PLATFORM_SANDBOXES_MAX_CPU_MILLICORES: '10000000',
    SALLYPORT_PLATFORM_SANDBOXES_MAX_MEMORY_BYTES: String(2 ** 50),
    SALLYPORT_PLATFORM_SANDBOXES_MAX_STORAGE_BYTES: String(2 ** 50),
    ...env,
  };
  const init = { env: { ...variables, SALLYPORT_BOOTSTRAP_API_KEY: key } };
  const { code, stderr } = await runToEnd(process.execPath, [sallyport, 'platform', 'init'], init);
  if (code !== 0) throw new Error(`platform init: ${stderr}`);
  const directory = join(scratch.path, 'data', 'box-host');
  let child: ChildProcess | undefined;
  let url = '';
  const platform: BoxPlatform = {
    directory,
    get pid() {
      return child?.pid ?? 0;
    },
    async start() {
      child = spawn(process.execPath, [sallyport, 'platform'], {
        env: variables,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      url = await readUrl(child);
    },
    async ask(method, path, body) {
      const headers = { 'X-Api-Key': key, 'Content-Type': 'application/json' };
      try {
        const sent = body === undefined ? {} : { body: JSON.stringify(body) };
        const response = await fetch(`${url}${path}`, { method, headers, ...sent });
        const text = await response.text();
        return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
      } catch {
        return { status: 0, body: {} };
      }
    },
    async [Symbol.asyncDispose]() {
      if (child?.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      const host = await hostPid(directory);
      if (host !== undefined) {
        process.kill(host, 'SIGTERM');
        await ended(host);
      }
      await scratch[Symbol.asyncDispose]();
    },
  };
  return platform;
}

async function readUrl(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('the platform has no output');
  for await (const line of createInterface({ input: child.stdout })) {
    const entry: { readonly msg?: string; readonly api?: string } = JSON.parse(line);
    if (entry.msg !== 'ready' || entry.api === undefined) continue;
    child.stdout.resume();
    return entry.api;
  }
  throw new Error('the platform did not start');
}
