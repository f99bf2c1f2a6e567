// The time from the start of the launcher to the first byte of an intercepted response with an injected header. With the
// compile cache of the image, and without.
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child, Children } from './children.ts';
import { type Target, connectTo, openConnection } from './connection.ts';
import { type Spread, spreadOf } from './percentiles.ts';
import { drain, sceneEnvironment, spawnSallyport, waitForReady, writeProxyConfig } from './sallyport.ts';
import { type Scene, findFreePort, hosts, requestTo } from './scene.ts';

export type StartTimes = { readonly warm: Spread; readonly cold: Spread };

const START_DEADLINE_MS = 10_000;

/** Starts alternately with and without the cache, `count` times each. */
export async function measureStarts(
  children: Children,
  scene: Scene,
  options: { readonly packageDirectory: string; readonly count: number },
): Promise<StartTimes> {
  const { packageDirectory, count } = options;
  const stateDirectory = join(scene.directory, 'starts');
  await mkdir(stateDirectory, { mode: 0o700 });
  const cache = { NODE_COMPILE_CACHE: join(scene.directory, 'compile-cache') };
  const common = { packageDirectory, stateDirectory, recordsFile: join(scene.directory, 'starts.jsonl') };

  // Like the build of the image: a start without rules, ended when it is ready. It also creates the CA for the others.
  const first = { ...common, name: 'first start', listen: '127.0.0.1:0', env: cache };
  const warming = spawnSallyport(children, first, {});
  const { ca } = await waitForReady(warming, common.recordsFile);
  await drain(warming);

  const environment = sceneEnvironment(scene, await writeProxyConfig(scene));
  const caPem = await readFile(ca, 'utf8');
  const measure = async (env: Readonly<Record<string, string>>): Promise<number> => {
    const port = await findFreePort();
    const startedMs = performance.now();
    const start = { ...common, name: 'start', listen: `127.0.0.1:${port}`, env };
    const child = spawnSallyport(children, start, environment);
    const servedMs = await firstByteMs(child, targetOf(scene, port, caPem));
    await child.stop();
    return servedMs - startedMs;
  };
  const warm: number[] = [];
  const cold: number[] = [];
  for (let i = 0; i < count; i += 1) {
    warm.push(await measure(cache));
    cold.push(await measure({}));
  }
  return { warm: spreadOf(warm), cold: spreadOf(cold) };
}

function targetOf({ originPort }: Scene, port: number, caPem: string): Target {
  const authority = `${hosts.rule}:${originPort}`;
  return { port, connectTo: authority, host: hosts.rule, caPem, request: requestTo(authority, '/v1') };
}

async function firstByteMs(child: Child, target: Target): Promise<number> {
  await waitForPort(child, target.port);
  const error = Promise.withResolvers<never>();
  let firstMs = Number.NaN;
  const onFirstByte = (): void => {
    firstMs = performance.now();
  };
  const connection = await openConnection(target, error.reject, onFirstByte);
  // The whole response, so that an error does not count as a served request.
  const responded = new Promise<void>((resolve) => connection.exchange(resolve));
  await Promise.race([responded, error.promise]);
  connection.close();
  return firstMs;
}

async function waitForPort(child: Child, port: number): Promise<void> {
  const endMs = performance.now() + START_DEADLINE_MS;
  while (performance.now() < endMs && child.process.exitCode === null) {
    const socket = await connectTo(port).catch(() => undefined);
    if (socket !== undefined) {
      socket.destroy();
      return;
    }
    await delay(1);
  }
  throw new Error('a start took too long');
}
