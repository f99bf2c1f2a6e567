// Two platforms with a data directory each on one database, as on two machines: each deployment is served by the runner of one of them, also
// when a platform is killed and started again.
import { expect, it } from 'vitest';
import { createDeploymentPlatform, runnerReady } from '../support/deployment-platform.ts';
import type { PlatformProcess } from '../support/platform-process.ts';

const options = { timeout: 180_000, tags: 'long' };
const patience = { timeout: 60_000 };
const COUNT = 2;

it('one runner serves each deployment', options, async () => {
  await using scene = await createDeploymentPlatform();
  const first = await scene.start();
  const { db } = scene.database.store;
  const deployments: Awaited<ReturnType<typeof scene.addDeployment>>[] = [];
  for (let nth = 0; nth < COUNT; nth += 1) deployments.push(await scene.addDeployment());
  const second = await scene.start({ SALLYPORT_PLATFORM_DATA_DIR: await scene.addDataDirectory() });
  const gateways = await Promise.all([first, second].map(gatewayOf));
  for (const { revisionId } of deployments)
    await expect.poll(() => scene.statusOf(revisionId), patience).toBe('DEPLOYED');
  const askAll = () =>
    Promise.all(
      deployments.map(async ({ id }) => {
        const statuses = await Promise.all(gateways.map((url) => statusAt(`${url}/d/${id}/ok`, scene.key)));
        return statuses.toSorted();
      }),
    );
  // The one that has its build; to the other gateway there is no such deployment.
  await expect.poll(askAll, patience).toEqual(deployments.map(() => [200, 404]));
  const runners = await db.selectFrom('runners').select('id').execute();
  expect(runners).toHaveLength(2);
  const rows = await db.selectFrom('deployments').select('runner_id').execute();
  expect(new Set(rows.map((row) => row.runner_id)).size).toBe(1);
  // The other platform does not take what it has no files of, whoever is away.
  first.process.kill('SIGKILL');
  await first.process.exited;
  const again = await scene.start();
  gateways[0] = await gatewayOf(again);
  await expect.poll(askAll, patience).toEqual(deployments.map(() => [200, 404]));
});

async function gatewayOf(platform: PlatformProcess): Promise<string> {
  return String((await runnerReady(platform))['gateway']);
}

/** 0: nobody listens. */
async function statusAt(url: string, key: string): Promise<number> {
  return fetch(url, { headers: { 'X-Api-Key': key } }).then(
    ({ status }) => status,
    () => 0,
  );
}
