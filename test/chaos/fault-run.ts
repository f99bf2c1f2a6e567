// Runs one row: a process with bystanders, the fault, the end of the fault, and the check that the process has recovered.
// Returns problems as texts; prints nothing.
import { setTimeout as delay } from 'node:timers/promises';
import { findLeaks } from '../e2e/canary-search.ts';
import { fetchCode } from './proxy-request.ts';
import { type Bystander, createBystander } from './bystander.ts';
import { type ChaosScene, createChaosScene } from './chaos-scene.ts';
import { toCanaries } from './chaos-secrets.ts';
import type { ChaosRow, Ending, Fault } from './fault.ts';

export const MAX_RECOVERY_MS = 5_000;
/** Longer than the promised limit, so that a late recovery is distinguished from none. */
const RECOVERY_TIMEOUT_MS = 20_000;
const POLL_MS = 10;
/** Idle connections to hosts, and descriptors that the runtime opens once. */
const SPARE_DESCRIPTORS = 4;

export type ChaosResult = {
  readonly name: string;
  readonly seen: string;
  readonly recoveryMs: number;
  /** The codes that bystanders got, with their counts. */
  readonly bystanders: ReadonlyMap<string, number>;
  /** The failed expectations; empty if all passed. */
  readonly problems: readonly string[];
};

export async function runRow(row: ChaosRow, maxRecoveryMs: number = MAX_RECOVERY_MS): Promise<ChaosResult> {
  await using scene = await createChaosScene(row.settings);
  const result = 'end' in row ? await runEnding(row, scene) : await runFault(row, scene);
  const { seen, recoveryMs, problems } = result;
  return {
    ...result,
    problems: [
      ...(seen === row.expects ? [] : [`observed "${seen}", expected "${row.expects}"`]),
      ...(recoveryMs < maxRecoveryMs ? [] : [`no recovery in ${maxRecoveryMs} ms`]),
      ...problems,
    ],
  };
}

async function runFault(row: Fault, scene: ChaosScene): Promise<ChaosResult> {
  const arranged = await row.arrange(scene);
  const { sidecar } = scene;
  const { pid } = sidecar.process;
  const authority = `bystander.test:${scene.bystanderHost.origin.port}`;
  const bystander = createBystander(sidecar, authority);
  try {
    await recover(scene, arranged.authority, authority);
    const before = sidecar.process.usage().descriptors;
    const seen = await arranged.inject();
    await arranged.remove();
    const recoveryMs = await recover(scene, arranged.recovered ?? arranged.authority, authority);
    // Measured with the bystanders connected, as before the fault.
    const lost = await descriptorProblems(scene, before);
    await bystander.stop();
    const problems = [
      ...bystanderProblems(row, bystander),
      ...lost,
      ...(isAlive(pid) ? [] : ['the process ended']),
      ...(await sceneProblems(scene)),
    ];
    return { name: row.name, seen, recoveryMs, bystanders: bystander.seen, problems };
  } finally {
    await bystander.stop();
    await arranged.close?.();
  }
}

async function runEnding(row: Ending, scene: ChaosScene): Promise<ChaosResult> {
  const { seen, recoveryMs } = await row.end(scene);
  const problems = await sceneProblems(scene);
  return { name: row.name, seen, recoveryMs, bystanders: new Map(), problems };
}

/** The milliseconds until both hosts respond with 200, each on a connection of its own. */
export async function recover(scene: ChaosScene, ...authorities: readonly string[]): Promise<number> {
  const startedMs = performance.now();
  const elapsedMs = (): number => performance.now() - startedMs;
  for (const authority of authorities) {
    while ((await fetchCode(scene.sidecar, authority)) !== '200' && elapsedMs() < RECOVERY_TIMEOUT_MS)
      await delay(POLL_MS);
  }
  return elapsedMs();
}

function bystanderProblems(row: Fault, { seen, reconnects }: Bystander): readonly string[] {
  const allowed = ['200', ...(row.bystanderMaySee ?? [])];
  const wrong = [...seen].filter(([code]) => !allowed.includes(code));
  return [
    ...wrong.map(([code, count]) => `a bystander got "${code}" ${count} times`),
    ...(reconnects === 0 || row.bystanderMaySee ? [] : [`bystanders lost ${reconnects} connections`]),
    ...(seen.has('200') ? [] : ['no bystander was served']),
  ];
}

async function descriptorProblems(scene: ChaosScene, before: number): Promise<readonly string[]> {
  const { process } = scene.sidecar;
  const startedMs = performance.now();
  while (process.usage().descriptors > before + SPARE_DESCRIPTORS) {
    if (performance.now() - startedMs > RECOVERY_TIMEOUT_MS)
      return [`${before} descriptors before, ${process.usage().descriptors} after`];
    await delay(POLL_MS);
  }
  return [];
}

async function sceneProblems(scene: ChaosScene): Promise<readonly string[]> {
  const misdelivered = scene.host.misdelivered + scene.bystanderHost.misdelivered;
  return [
    ...findLeaks('the output', await scene.allOutput(), toCanaries(scene.secrets)),
    ...(misdelivered === 0 ? [] : [`${misdelivered} requests arrived without their credential`]),
  ];
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
