// What does a callback cost? A hit beside a rule on kept-alive connections is part of keep-alive; here are new tunnels: to a
// host of a rule, to one host of a callback that is cached, to 1,000 hosts whose callbacks are cached, and to hosts that were
// never seen, each of which calls the endpoint.
import type { Question } from '../support/question.ts';
import type { Round, Run } from '../support/round.ts';
import { ruleFor, startSallyport } from '../support/sallyport.ts';
import { hosts } from '../support/scene.ts';
import { throughProxy } from '../support/subject.ts';
import type { Target } from '../support/connection.ts';

const LANES = 8;
const MISSES = 32;
const DOMAIN = 'called.localhost';

export const callbacks: Question = {
  name: 'callbacks',
  title: 'New tunnels with the header of a callback',
  loads: { callback_tunnels: '8 clients at once, one request each' },
  columns: [
    { figure: 'cpu_us', title: 'CPU us/tunnel', digits: 0 },
    { figure: 'p50_ms', title: 'p50 ms', digits: 2 },
    { figure: 'p99_ms', title: 'p99 ms', digits: 2 },
    { figure: 'callback_calls', title: 'calls', digits: 0 },
  ],
  async measure(stage) {
    const { children, scene, packageDirectory, effort } = stage;
    const count = effort.level === 'tiny' ? 20 : 1_000;
    const known = names('known', count);
    const fresh = names('fresh', MISSES * (effort.rounds + 1));
    await scene.addHosts([...known, ...fresh]);
    const callback = { name: 'all', match_hosts: [`*.${DOMAIN}`], url: scene.callbackUrl, ttl_seconds: 3600 };
    const document = { rules: [ruleFor(scene, hosts.rule)], callbacks: [callback] };
    const proxy = await startSallyport(children, scene, { packageDirectory, name: 'callbacks', document });
    const subject = { name: 'callbacks', pid: proxy.child.pid, target: throughProxy({ ...proxy }) };
    const targetOf = (host: string): Target => throughProxy({ ...proxy, host })(scene.originPort);
    const measure = async (targets: readonly Target[], total?: number): Promise<Round> => {
      const before = scene.callbackCalls();
      const more = total === undefined ? {} : { count: total };
      const load = {
        lanes: LANES,
        durationMs: total === undefined ? effort.durationMs * 2 : 60_000,
        ...more,
      };
      const round = await stage.client.shortLived(subject, load, targets);
      return { ...round, callback_calls: scene.callbackCalls() - before };
    };
    const all = known.map(targetOf);
    let at = 0;
    const runs: readonly Run[] = [
      run('a rule, 1 host', () => measure([targetOf(hosts.rule)])),
      run('hit, 1 host', () => measure(all.slice(0, 1))),
      run(`hit, ${count} hosts`, () => measure(all, count)),
      run('miss', () => {
        const targets = fresh.slice(at, (at += MISSES)).map(targetOf);
        return measure(targets, MISSES);
      }),
    ];
    for (const each of runs) await each.measure();
    const series = await stage.measure(runs);
    await proxy.child.stop();
    return { series, notes: ['a miss waits for the endpoint, which is local and responds at once'] };
  },
};

function run(subject: string, measure: () => Promise<Round>): Run {
  return { load: 'callback_tunnels', subject, measure };
}

function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}.${DOMAIN}`);
}
