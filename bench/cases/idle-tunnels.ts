// What do 1,000 idle connections cost: memory of each, and CPU of the requests beside them? Blind tunnels and intercepted
// connections, each in a proxy of its own, beside one without.
import { residentMb } from '../support/children.ts';
import { startLoadClient } from '../support/measure.ts';
import { type Question, cpuColumn, latencyColumns, warmUp } from '../support/question.ts';
import type { Run } from '../support/round.ts';
import { startSallyport } from '../support/sallyport.ts';
import { hosts } from '../support/scene.ts';
import { throughProxy } from '../support/subject.ts';

const CONNECTIONS = 1_000;

export const idleTunnels: Question = {
  name: 'idle-tunnels',
  title: `${CONNECTIONS} idle connections`,
  loads: { idle_1000: '32 other clients, kept-alive HTTP/1.1' },
  columns: [
    cpuColumn,
    ...latencyColumns,
    { figure: 'rss_mb', title: 'RSS MB', digits: 0 },
    { figure: 'kb_per_connection', title: 'KB/connection', digits: 1 },
  ],
  async measure(stage) {
    const { children, scene, packageDirectory, effort, client } = stage;
    const { durationMs, settleMs, warmUpMs } = effort;
    const holder = startLoadClient(children, scene);
    const runs: (Run & { readonly stop: () => Promise<void> })[] = [];
    for (const [name, kind] of [
      ['none idle', undefined],
      ['blind tunnels', { host: hosts.tunnel, folder: '/v0', caPem: scene.caPem }],
      ['intercepted', {}],
    ] as const) {
      const short = name.replaceAll(' ', '-');
      const proxy = await startSallyport(children, scene, { packageDirectory, name: `idle-${short}` });
      const subject = { name, pid: proxy.child.pid, target: throughProxy({ ...proxy }) };
      const load = { clients: 32, durationMs, settleMs };
      await warmUp([{ measure: () => client.keepAlive(subject, { ...load, durationMs: warmUpMs }) }]);
      const beforeMb = residentMb([proxy.child.pid]).now;
      if (kind !== undefined) {
        const { port, caPem } = proxy;
        await holder.hold(throughProxy({ port, caPem, ...kind })(scene.originPort), CONNECTIONS);
      }
      const each = ((residentMb([proxy.child.pid]).now - beforeMb) * 1024) / CONNECTIONS;
      const figures = kind === undefined ? {} : { kb_per_connection: each };
      const measure = async () => ({ ...(await client.keepAlive(subject, load)), ...figures });
      runs.push({ load: 'idle_1000', subject: name, measure, stop: () => proxy.child.stop() });
    }
    const series = await stage.measure(runs);
    await holder.end();
    for (const { stop } of runs) await stop();
    return { series };
  },
};
