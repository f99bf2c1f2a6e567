// The moments of a deployment at which a storm kills: how each is brought about, and how it is seen that it has come.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connectOnce } from '../../../src/platform/store/database.ts';
import { agentPidsOf } from './deployment-storm-machine.ts';
import type { StormPlatform } from './deployment-storm-platform.ts';

export const STAGES = ['unpacking', 'installation', 'database', 'switch', 'drain', 'deletion'] as const;
export type Stage = (typeof STAGES)[number];

/** How much later than it is seen it is killed at most: about as long as it takes. */
const LASTS_MS: Readonly<Record<Stage, number>> = {
  unpacking: 300,
  installation: 2_500,
  database: 80,
  switch: 2_000,
  drain: 2_000,
  deletion: 150,
};
const PATIENCE_MS = 20_000;
const LOOK_MS = 5;

/** Seen before the action that brings it about begins. */
export type Before = { readonly builds: ReadonlySet<string>; readonly databases: number };

export async function lookBefore(platform: StormPlatform): Promise<Before> {
  return {
    builds: new Set(await listBuilds(platform)),
    databases: await count(platform, 'runner_databases'),
  };
}

/** False: it has passed, or did not come. */
export async function waitForStage(
  platform: StormPlatform,
  stage: Stage,
  before: Before,
  random: (below: number) => number,
): Promise<boolean> {
  const deadlineMs = Date.now() + PATIENCE_MS;
  while (!(await hasCome(platform, stage, before))) {
    if (Date.now() > deadlineMs) return false;
    await delay(LOOK_MS);
  }
  await delay(random(LASTS_MS[stage]));
  return true;
}

async function hasCome(platform: StormPlatform, stage: Stage, before: Before): Promise<boolean> {
  switch (stage) {
    case 'unpacking':
      return (await listBuilds(platform)).some((id) => !before.builds.has(id));
    case 'installation':
      return (await listNames(join(platform.data, 'runner', 'builds', 'installations'))).length > 0;
    case 'database':
      return (await count(platform, 'runner_databases')) > before.databases;
    case 'switch':
      return (await count(platform, `revisions where status = 'DEPLOYING'`)) > 0;
    case 'drain':
      return (
        agentPidsOf(platform).length > (await count(platform, 'deployments')) && (await isSettled(platform))
      );
    case 'deletion':
      return (await count(platform, `deployments where status = 'AWAITING_DELETE'`)) > 0;
  }
}

/** The new revision serves, and the old agent server still runs. */
async function isSettled(platform: StormPlatform): Promise<boolean> {
  return (await count(platform, `revisions where status in ('AWAITING_DEPLOY', 'DEPLOYING')`)) === 0;
}

function listBuilds({ data }: StormPlatform): Promise<readonly string[]> {
  return listNames(join(data, 'runner', 'builds', 'builds'));
}

function listNames(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}

async function count({ owner }: StormPlatform, rows: string): Promise<number> {
  const found = await connectOnce(owner, (client) => client.query(`select count(*)::int as n from ${rows}`));
  return Number(found.rows[0]?.n);
}
