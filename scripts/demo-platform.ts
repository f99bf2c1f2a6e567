// The platform that demos start: its process, its box host, and requests to its API.
import { type ChildProcess, type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

const root = join(import.meta.dirname, '..');
const sallyport = join(root, 'bin', 'sallyport.js');

type DemoProcess = ChildProcessByStdio<null, Readable, null>;

export type DemoPlatform = {
  readonly url: string;
  readonly key: string;
  readonly data: string;
  /** What its log says about what runs the boxes. */
  runtime: string;
};

export async function createFirstKey(data: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const args = [sallyport, 'platform', 'init', '--data-dir', data];
  execFile(process.execPath, args, { cwd: root }, (error, out, err) =>
    error === null ? resolve(out.trim()) : reject(new Error(`the first key is not created: ${err}`)),
  );
  return promise;
}

/** In a process group of its own: Ctrl-C ends the demo, and the demo ends the platform. */
export function spawnPlatform(
  data: string,
  sidecarConfigFile: string | undefined,
  more: Readonly<Record<string, string>> = {},
  launcher: string = sallyport,
): DemoProcess {
  const args = [launcher, 'platform', '--data-dir', data, '--listen', '127.0.0.1:0'];
  const env = {
    ...process.env,
    SALLYPORT_PLATFORM_GATEWAY_LISTEN: '127.0.0.1:0',
    SALLYPORT_PLATFORM_RUNNER_GATEWAY_LISTEN: '127.0.0.1:0',
    SALLYPORT_PLATFORM_SANDBOXES_RUNTIME: process.env['SALLYPORT_PLATFORM_SANDBOXES_RUNTIME'] ?? 'auto',
    ...(sidecarConfigFile === undefined
      ? {}
      : {
          SALLYPORT_PLATFORM_SANDBOXES_SIDECAR_CONFIG: sidecarConfigFile,
          SALLYPORT_PLATFORM_RUNNER_SIDECAR_CONFIG: sidecarConfigFile,
        }),
    ...more,
  };
  return spawn(process.execPath, args, {
    ...{ cwd: root, env },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
}

/** Resolves when it is ready; its log is read from then on. */
export async function followPlatform(
  child: DemoProcess,
  { key, data }: Pick<DemoPlatform, 'key' | 'data'>,
): Promise<DemoPlatform> {
  const ready = Promise.withResolvers<DemoPlatform>();
  child.once('exit', () => ready.reject(new Error('the platform did not start')));
  createInterface({ input: child.stdout }).on('line', (line) => {
    const entry: Readonly<Record<string, string>> = JSON.parse(line);
    if (entry['msg'] === 'ready' && entry['api'] !== undefined)
      ready.resolve({ url: entry['api'], key, data, runtime: '' });
    if (entry['runtime'] !== undefined) void ready.promise.then((platform) => (platform.runtime = line));
  });
  return ready.promise;
}

export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

/** It outlives the platform, so that boxes go on while the platform starts again. Here nothing may remain. */
export async function endBoxHost(data: string): Promise<void> {
  const directory = join(data, 'box-host');
  const token = await readFile(join(directory, 'token'), 'utf8').catch(() => undefined);
  if (token === undefined) return;
  const asked = request({
    ...{ socketPath: join(directory, 'api.sock'), path: '/v1/status', agent: false },
    headers: { Authorization: `Bearer ${token}` },
  }).end();
  const [response] = await once(asked, 'response').catch(() => []);
  if (response === undefined) return;
  const { pid } = (await json(response)) as { readonly pid: number };
  process.kill(pid, 'SIGTERM');
  // It is no child of this process, which gets no event.
  while (isAlive(pid)) await delay(20);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export async function ask(
  { url, key }: DemoPlatform,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

type Events = {
  readonly items: readonly {
    readonly time: number;
    readonly api: { readonly operation: string };
    readonly status: string;
  }[];
};

/** Prints the newest events of these operations. Rejects when one has none, or an event has the secret. */
export async function showEvents(
  platform: DemoPlatform,
  operations: readonly string[],
  secret: string,
): Promise<void> {
  const query = operations.map((one) => `operations=${one}`).join('&');
  const { items } = (await ask(platform, 'GET', `/api/v1/audit-logs?limit=100&${query}`)) as Events;
  process.stdout.write('\nEvents of the audit log, newest first:\n');
  for (const { time, api, status } of items.slice(0, 12))
    process.stdout.write(`  ${new Date(time).toISOString()}  ${api.operation}  ${status}\n`);
  const missing = operations.filter((one) => !items.some(({ api }) => api.operation === one));
  if (missing.length > 0) throw new Error(`not as expected: there is an event of ${missing.join(', ')}`);
  if (JSON.stringify(items).includes(secret)) throw new Error('not as expected: no event has the secret');
}
