// Boxes of one platform under load: all are created, then used by one command each, then deleted, so many at a time.
import { percentilesOf } from '../../../bench/support/percentiles.ts';
import { createBoxHostRuntime } from '../../../src/platform/runtime/box-host-runtime.ts';
import { execute } from '../../box-host/box-host-scene.ts';
import { type BoxPlatform, createBoxPlatform } from './box-storm-platform.ts';
import { describeLeftovers, pssOf, readHost } from './box-storm-machine.ts';

const BOXES = '/v2/sandboxes/boxes';
const MEBIBYTE = 1024 * 1024;

type Load = { readonly boxes: number; readonly load: number; readonly runtime: string };

/** What is wrong; prints the figures. */
export async function runBoxLoad({ boxes, load, runtime }: Load): Promise<readonly string[]> {
  await using platform = await createBoxPlatform(runtime);
  await platform.start();
  const errors: string[] = [];
  // Its sidecar, the base snapshot and whatever else is made once are not a box's.
  const warm = await create(platform, 'warm', errors);
  if (warm === undefined) return errors;
  await platform.ask('DELETE', `${BOXES}/${warm.id}`);
  const keeper = await create(platform, 'keeper', errors);
  const before = await memoryOf(platform);
  const names = Array.from({ length: boxes }, (_, index) => `box-${index}`);
  const created = await atATime(load, names, (name) => create(platform, name, errors));
  const made = created.filter((one) => one !== undefined);
  const idle = await memoryOf(platform);
  console.log(`${made.length} boxes, ${load} at a time`);
  console.log(`  create to ready: ${report(made.map(({ ms }) => ms))}`);
  console.log(`  idle: ${show((idle.sum - before.sum) / made.length)} a box (box host and sidecars)`);
  if (made.every(({ isIsolated }) => isIsolated)) {
    await use(platform, made, load, errors);
    const used = await memoryOf(platform);
    console.log(
      `  with agent: ${show((used.sum - before.sum) / made.length)} a box (${used.others} processes)`,
    );
  } else console.log('  attached boxes run no commands of ours');
  const deletions = await atATime(load, [...made, ...(keeper ? [keeper] : [])], async ({ id }) => {
    const startedMs = performance.now();
    const { status } = await platform.ask('DELETE', `${BOXES}/${id}`);
    if (status !== 204) errors.push(`DELETE of ${id} was ${status}`);
    return performance.now() - startedMs;
  });
  console.log(`  delete: ${report(deletions)}`);
  return [...errors, ...(await leftoversOf(platform))];
}

type Made = { readonly id: string; readonly ms: number; readonly isIsolated: boolean };

async function create(platform: BoxPlatform, name: string, errors: string[]): Promise<Made | undefined> {
  const startedMs = performance.now();
  const { status, body } = await platform.ask('POST', BOXES, { name, wait_for_ready: true, timeout: 120 });
  const ms = performance.now() - startedMs;
  if (status === 201) return { id: String(body['id']), ms, isIsolated: body['proxy_url'] === null };
  errors.push(`${name} was ${status}: ${JSON.stringify(body).slice(0, 300)}`);
  return undefined;
}

/** The first command starts the agent of the box. */
async function use(
  { directory }: BoxPlatform,
  made: readonly Made[],
  load: number,
  errors: string[],
): Promise<void> {
  const runtime = await createBoxHostRuntime({ command: ['/nonexistent'], directory });
  const times = await atATime(load, made, async ({ id }) => {
    const startedMs = performance.now();
    const connection = await runtime.connect(id, 'data-plane');
    const { body } = await execute(connection, 'echo used');
    connection.destroy();
    if (body['stdout'] !== 'used\n') errors.push(`the command of ${id}: ${JSON.stringify(body)}`);
    return performance.now() - startedMs;
  });
  await runtime.close();
  console.log(`  first command: ${report(times)}`);
}

async function memoryOf({ directory }: BoxPlatform) {
  const state = await readHost(directory);
  if (state === undefined) return { sum: 0, others: 0 };
  return { sum: pssOf([state.host, ...state.sidecars, ...state.others]), others: state.others.length };
}

async function leftoversOf(platform: BoxPlatform): Promise<readonly string[]> {
  const { body } = await platform.ask('GET', BOXES);
  const rows = Array.isArray(body['sandboxes']) ? body['sandboxes'].length : 0;
  const left = describeLeftovers(platform.directory, await readHost(platform.directory));
  const all = [...(rows > 0 ? [`${rows} rows`] : []), ...left].map((one) => `left behind: ${one}`);
  console.log(all.length === 0 ? '  nothing is left behind' : `  ${all.length} things are left behind`);
  return all;
}

async function atATime<T, R>(
  count: number,
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const waiting = items.values();
  const results: R[] = [];
  const worker = async (): Promise<void> => {
    for (const item of waiting) results.push(await work(item));
  };
  await Promise.all(Array.from({ length: count }, worker));
  return results;
}

function report(samples: readonly number[]): string {
  if (samples.length === 0) return 'none';
  const { p50, p99, max } = percentilesOf([Float64Array.from(samples)]);
  return `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, max ${max.toFixed(0)} ms`;
}

function show(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
}
