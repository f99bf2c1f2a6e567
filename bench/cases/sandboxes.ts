// Does a request cost more when one process serves 200 sandboxes? Each has a token, rules and connections of its own.
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Target } from '../support/connection.ts';
import { type Question, cpuColumn, latencyColumns, warmUp } from '../support/question.ts';
import type { Run } from '../support/round.ts';
import { type Sallyport, ruleFor, startSallyport } from '../support/sallyport.ts';
import { type Scene, hosts } from '../support/scene.ts';
import { throughProxy } from '../support/subject.ts';

const SANDBOXES = 200;
const RETRY_MS = 250;

export const sandboxes: Question = {
  name: 'sandboxes',
  title: `${SANDBOXES} sandboxes in one process`,
  loads: { sandboxes: `${SANDBOXES} clients, kept-alive HTTP/1.1` },
  columns: [cpuColumn, ...latencyColumns, { figure: 'rss_mb', title: 'RSS MB', digits: 0 }],
  async measure(stage) {
    const { children, scene, packageDirectory, effort, client } = stage;
    const { durationMs, settleMs, warmUpMs } = effort;
    const runs: (Run & { readonly stop: () => Promise<void> })[] = [];
    for (const count of [1, SANDBOXES]) {
      const proxy = await startSallyport(children, scene, { packageDirectory, name: `sandboxes-${count}` });
      const name = count === 1 ? 'one sandbox' : `${count} sandboxes`;
      const target = throughProxy({ ...proxy });
      const one = target(scene.originPort);
      const targets = count === 1 ? [one] : await createSandboxes(scene, proxy, one, count);
      const subject = { name, pid: proxy.child.pid, target };
      const load = { clients: SANDBOXES, durationMs, settleMs };
      await warmUp([
        { measure: () => client.keepAlive(subject, { ...load, durationMs: warmUpMs }, targets) },
      ]);
      const measure = () => client.keepAlive(subject, load, targets);
      runs.push({ load: 'sandboxes', subject: name, measure, stop: () => proxy.child.stop() });
    }
    const series = await stage.measure(runs);
    for (const { stop } of runs) await stop();
    return { series };
  },
};

/** Created by the admin API; a client selects its sandbox by the token. */
async function createSandboxes(
  scene: Scene,
  { adminUrl, adminTokenFile }: Sallyport,
  target: Target,
  count: number,
): Promise<readonly Target[]> {
  const token = (await readFile(adminTokenFile, 'utf8')).trim();
  const targets: Target[] = [];
  while (targets.length < count) {
    const response = await fetch(new URL('/v1/sandboxes', adminUrl), {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        id: `bench-${targets.length}`,
        proxy_config: { rules: [ruleFor(scene, hosts.rule)] },
      }),
    });
    const created = (await response.json()) as { readonly token?: string };
    // The admin API limits writes in a second.
    if (response.status === 429) await delay(RETRY_MS);
    else if (created.token === undefined)
      throw new Error(`no sandbox was created: ${JSON.stringify(created)}`);
    else {
      const password = Buffer.from(`sallyport:${created.token}`).toString('base64');
      targets.push({ ...target, proxyAuthorization: `Basic ${password}` });
    }
  }
  return targets;
}
