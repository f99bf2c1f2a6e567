// One row from start to end: a process with bystanders on it, the fault, its end, and then the proof that all is as before.
// What it finds wrong it says in words; it prints nothing.
import { setTimeout as delay } from 'node:timers/promises';
import { findLeaks } from '../e2e/canary-search.ts';
import { ask } from './asking.ts';
import { type Bystander, createBystander } from './bystander.ts';
import { type ChaosScene, createChaosScene } from './chaos-scene.ts';
import { toCanaries } from './chaos-secrets.ts';
import type { ChaosRow, Ending, Fault } from './fault.ts';

export const MAX_RECOVERY_MS = 5_000;
/** Waited for longer than is promised, so that what is late can be told from what never comes. */
const GIVEN_UP_MS = 20_000;
const POLL_MS = 10;
/** Idle connections to hosts, and whatever the runtime opens once. */
const SPARE_DESCRIPTORS = 4;

export type ChaosResult = {
  readonly name: string;
  readonly seen: string;
  readonly recoveryMs: number;
  /** What bystanders were answered, and how often. */
  readonly bystanders: ReadonlyMap<string, number>;
  /** What was wrong; empty if all held. */
  readonly faults: readonly string[];
};

export async function runRow(row: ChaosRow, maxRecoveryMs: number = MAX_RECOVERY_MS): Promise<ChaosResult> {
  await using scene = await createChaosScene(row.settings);
  const result = 'end' in row ? await runEnding(row, scene) : await runFault(row, scene);
  const { seen, recoveryMs, faults } = result;
  return {
    ...result,
    faults: [
      ...(seen === row.expects ? [] : [`"${seen}" was seen, not "${row.expects}"`]),
      ...(recoveryMs < maxRecoveryMs ? [] : [`no recovery in ${maxRecoveryMs} ms`]),
      ...faults,
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
    const seen = await arranged.strike();
    await arranged.heal();
    const recoveryMs = await recover(scene, arranged.recovered ?? arranged.authority, authority);
    // With the bystanders on it, as before.
    const lost = await descriptorFaults(scene, before);
    await bystander.stop();
    const faults = [
      ...bystanderFaults(row, bystander),
      ...lost,
      ...(isAlive(pid) ? [] : ['the process ended']),
      ...(await sceneFaults(scene)),
    ];
    return { name: row.name, seen, recoveryMs, bystanders: bystander.seen, faults };
  } finally {
    await bystander.stop();
    await arranged.close?.();
  }
}

async function runEnding(row: Ending, scene: ChaosScene): Promise<ChaosResult> {
  const { seen, recoveryMs } = await row.end(scene);
  const faults = await sceneFaults(scene);
  return { name: row.name, seen, recoveryMs, bystanders: new Map(), faults };
}

/** How long until both hosts answer 200, each on a connection of its own. */
export async function recover(scene: ChaosScene, ...authorities: readonly string[]): Promise<number> {
  const startedMs = performance.now();
  const elapsedMs = (): number => performance.now() - startedMs;
  for (const authority of authorities) {
    while ((await ask(scene.sidecar, authority)) !== '200' && elapsedMs() < GIVEN_UP_MS) await delay(POLL_MS);
  }
  return elapsedMs();
}

function bystanderFaults(row: Fault, { seen, reconnects }: Bystander): readonly string[] {
  const allowed = ['200', ...(row.bystanderMaySee ?? [])];
  const wrong = [...seen].filter(([code]) => !allowed.includes(code));
  return [
    ...wrong.map(([code, count]) => `a bystander saw "${code}" ${count} times`),
    ...(reconnects === 0 || row.bystanderMaySee ? [] : [`bystanders lost ${reconnects} connections`]),
    ...(seen.has('200') ? [] : ['no bystander was served']),
  ];
}

async function descriptorFaults(scene: ChaosScene, before: number): Promise<readonly string[]> {
  const { process } = scene.sidecar;
  const startedMs = performance.now();
  while (process.usage().descriptors > before + SPARE_DESCRIPTORS) {
    if (performance.now() - startedMs > GIVEN_UP_MS)
      return [`${before} descriptors before, ${process.usage().descriptors} after`];
    await delay(POLL_MS);
  }
  return [];
}

async function sceneFaults(scene: ChaosScene): Promise<readonly string[]> {
  const misdelivered = scene.host.misdelivered + scene.bystanderHost.misdelivered;
  return [
    ...findLeaks('what came out', await scene.everything(), toCanaries(scene.secrets)),
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
