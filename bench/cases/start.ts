// How long does a start take, and how much memory does an idle proxy have? The bundle with the compile cache of the image,
// from the start of the launcher to the line that reports it ready, beside a Node that does nothing, in turns. In full
// runs also to the first byte of a response to an injected request, and without a compile cache.
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Child, residentMb, treeOf } from '../support/children.ts';
import { type Target, openConnection } from '../support/connection.ts';
import { requestHeads } from '../support/heads.ts';
import type { Question, Stage } from '../support/question.ts';
import type { Round, Run } from '../support/round.ts';
import { drain, sceneEnvironment, spawnSallyport, waitForReady } from '../support/sallyport.ts';
import { hosts, withOutput } from '../support/scene.ts';

export const start: Question = {
  name: 'start',
  title: 'Start, and memory of an idle proxy',
  loads: { start: 'from the start of the process', start_cold: 'the same without a compile cache' },
  columns: [
    { figure: 'start_ms', title: 'to ready, ms', digits: 0 },
    { figure: 'first_byte_ms', title: 'to first byte, ms', digits: 0 },
    { figure: 'idle_mb', title: 'idle RSS MB', digits: 0 },
  ],
  async measure(stage) {
    const folder = join(stage.scene.directory, 'starts');
    await mkdir(folder, { mode: 0o700 });
    const cache = { NODE_COMPILE_CACHE: join(stage.scene.directory, 'compile-cache') };
    const { caPem } = await fillCache(stage, folder, cache);
    const environment = await sceneEnvironment(stage.scene, 'start');
    const isLong = ['full', 'tiny'].includes(stage.effort.level);
    const warm = (): Promise<Round> =>
      measureStart(stage, { folder, environment, env: cache, caPem, isLong });
    const cold = (): Promise<Round> => measureStart(stage, { folder, environment, env: {}, caPem, isLong });
    const runs: readonly Run[] = [
      { load: 'start', subject: 'node', measure: () => measureNode(stage) },
      { load: 'start', subject: 'rule', measure: warm },
      ...(isLong ? [{ load: 'start_cold', subject: 'rule', measure: cold }] : []),
      ...stage.subjects
        .filter(
          ({ name, pid }) =>
            pid !== undefined && !['tunnel', 'intercepted', 'callback', 'rule'].includes(name),
        )
        .map(({ name, pid = 0 }) => ({ load: 'start', subject: name, measure: async () => idleMemory(pid) })),
    ];
    const notes = [
      'node is `node -e 0` from its start to its end',
      'idle RSS is that of the one process of the run, read once in each round',
    ];
    return { series: await stage.measure(runs), notes };
  },
};

/** The rules with which the image fills its cache. */
export const IMAGE_RULES = {
  rules: [
    {
      match_hosts: ['*.example.com'],
      match_paths: ['/v1/*'],
      headers: [{ name: 'X-Key', type: 'plaintext', value: 'x' }],
    },
  ],
} as const;
/** The build of the image lets the proxy run for 3 s; what it loads after it is ready takes less. */
const FILL_MS = 1_000;

/** Like the build of the image: a start that no client uses. It also creates the CA for the others. */
async function fillCache(stage: Stage, folder: string, cache: Readonly<Record<string, string>>) {
  const { children, scene, packageDirectory } = stage;
  const recordsFile = join(scene.directory, 'first-start.jsonl');
  const rulesFile = join(scene.directory, 'first-start.json');
  await writeFile(rulesFile, JSON.stringify(IMAGE_RULES), { mode: 0o600 });
  const env = { ...cache, SALLYPORT_PROXY_CONFIG: rulesFile };
  const common = { name: 'first start', listen: '127.0.0.1:0', packageDirectory, stateDirectory: folder };
  const child = spawnSallyport(children, { ...common, recordsFile, env }, {});
  const { ca } = await waitForReady(child, recordsFile);
  await delay(FILL_MS);
  await drain(child);
  return { caPem: await readFile(ca, 'utf8') };
}

type Start = {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly caPem: string;
  readonly isLong: boolean;
};
let starts = 0;

async function measureStart(
  stage: Stage,
  { folder, environment, env, caPem, isLong }: Start,
): Promise<Round> {
  const { children, scene, packageDirectory, sallyport } = stage;
  const recordsFile = join(scene.directory, `start-${(starts += 1)}.jsonl`);
  const common = { name: 'start', listen: '127.0.0.1:0', packageDirectory, stateDirectory: folder };
  const startedMs = performance.now();
  const child = spawnSallyport(children, { ...common, recordsFile, env }, environment);
  const ready = await waitForReady(child, recordsFile);
  const start_ms = performance.now() - startedMs;
  const authority = `${hosts.rule}:${scene.originPort}`;
  const port = Number(new URL(ready.proxy).port);
  const heads = requestHeads(authority, '/v1');
  const target = { port, connectTo: authority, host: hosts.rule, caPem, heads };
  const first = isLong ? { first_byte_ms: (await firstByteMs(target)) - startedMs } : {};
  await child.stop();
  return { start_ms, ...first, ...idleMemory(sallyport.child.pid) };
}

async function measureNode({ children, scene }: Stage): Promise<Round> {
  const startedMs = performance.now();
  const child: Child = withOutput(join(scene.directory, 'node.out'), (output) =>
    children.start('node', [process.execPath, '-e', '0'], { output }),
  );
  await once(child.process, 'exit');
  return { start_ms: performance.now() - startedMs };
}

function idleMemory(pid: number): Round {
  return { idle_mb: residentMb(treeOf(pid)).now };
}

/** When the first byte of a response arrived; resolves after the whole response, so that an error does not count. */
async function firstByteMs(target: Target): Promise<number> {
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => undefined);
  let firstMs = Number.NaN;
  const onFirstByte = (): void => void (firstMs = performance.now());
  const connection = await openConnection(target, reject, { onFirstByte });
  await Promise.race([new Promise<void>((done) => connection.exchange(done)), failed]);
  connection.close();
  return firstMs;
}
