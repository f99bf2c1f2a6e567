// Does a request cost more when there are more rules? 1, 100 and 1,000 rules: half of them on other hosts, half on other paths
// of the same host, the matching one last.
import type { Question } from '../support/question.ts';
import { cpuColumn, latencyColumns, warmUp } from '../support/question.ts';
import type { Run } from '../support/round.ts';
import { ruleFor, startSallyport } from '../support/sallyport.ts';
import { hosts } from '../support/scene.ts';
import { throughProxy } from '../support/subject.ts';

const COUNTS = [1, 100, 1_000] as const;

export const rules: Question = {
  name: 'rules',
  title: 'Requests with more rules',
  loads: { rules: '32 clients, kept-alive HTTP/1.1' },
  columns: [cpuColumn, ...latencyColumns, { figure: 'rss_mb', title: 'RSS MB', digits: 0 }],
  async measure(stage) {
    const { children, scene, packageDirectory, effort, client } = stage;
    const { durationMs, settleMs, warmUpMs } = effort;
    const runs: (Run & { readonly stop: () => Promise<void> })[] = [];
    for (const count of COUNTS) {
      const others = Array.from({ length: count - 1 }, (_, i) => otherRule(i));
      const document = { rules: [...others, ruleFor(scene, hosts.rule, 'last')] };
      const proxy = await startSallyport(children, scene, {
        packageDirectory,
        name: `rules-${count}`,
        document,
      });
      const name = `${count} rules`;
      const subject = { name, pid: proxy.child.pid, target: throughProxy({ ...proxy }) };
      const load = { clients: 32, durationMs, settleMs };
      await warmUp([{ measure: () => client.keepAlive(subject, { ...load, durationMs: warmUpMs }) }]);
      const measure = () => client.keepAlive(subject, load);
      runs.push({ load: 'rules', subject: name, measure, stop: () => proxy.child.stop() });
    }
    const series = await stage.measure(runs);
    for (const { stop } of runs) await stop();
    return { series };
  },
};

function otherRule(i: number): object {
  const headers = [{ name: 'X-Key', type: 'plaintext', value: `value-${i}` }];
  const name = `other-${i}`;
  return i % 2 === 0
    ? { name, match_hosts: [`h${i}.example.com`], headers }
    : { name, match_hosts: [hosts.rule], match_paths: [`/v9/projects/p${i}/*`], headers };
}
