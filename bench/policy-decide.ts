// The cost of a decision: 1,000 hosts, 1,000 rules on the paths of one host, and hosts that were never seen before.
// `node bench/policy-decide.ts`; figures are CPU microseconds per decision, the median of nine rounds, so that a busy
// machine does not affect them.
import { type Authority, parseAuthority } from '../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../src/policy/compile.ts';
import type { Policy } from '../src/policy/policy.ts';
import { parseProxyConfig } from '../src/policy/document/proxy-config.ts';

const ROUNDS = 9;
const headers = [{ name: 'X-Key', type: 'plaintext', value: 'v' }];

const hosts = policyOf(
  Array.from({ length: 1000 }, (_, i) => ({
    match_hosts: [i % 2 === 0 ? `h${i}.example.test` : `*.w${i}.example.test`],
    headers,
  })),
);
const paths = policyOf(
  Array.from({ length: 1000 }, (_, i) => ({
    match_hosts: ['api.example.test'],
    match_paths: [`/v1/projects/p${i}/*`],
    headers,
  })),
);

const known = authorityOf('deep.sub.w999.example.test:443');
const api = authorityOf('api.example.test:443');
const fresh = Array.from({ length: 20_000 }, (_, i) => authorityOf(`x${i}.w${i % 1000}.example.test:443`));

report('1,000 hosts, a host seen before', 200_000, () => hosts.decide(known, '/v1/x?y=1'));
report('1,000 hosts, a host never seen before', fresh.length, (i) =>
  hosts.decide(fresh[i] ?? known, '/v1/x?y=1'),
);
report('1,000 path rules, the first matches', 100_000, () => paths.decide(api, '/v1/projects/p0/items?y=1'));
report('1,000 path rules, the last matches', 4_000, () => paths.decide(api, '/v1/projects/p999/items?y=1'));
report('1,000 path rules, escapes, the last matches', 4_000, () =>
  paths.decide(api, '/v1/projects/p999/a%20b'),
);
report('1,000 path rules, 8 KiB of escapes, none', 1_000, () =>
  paths.decide(api, `/v1/${'%61'.repeat(2700)}`),
);

// The most expensive case within the limits: every kind of pattern at its limit, on the longest path that almost matches.
const long = 'z'.repeat(250);
const dear = [
  ...texts(10, (i) => `/*zz${i}*`),
  ...texts(990, (i) => `/*z${i}/*`),
  ...texts(9000, (i) => `/${long}${i}`),
];
const worst = policyOf(
  Array.from({ length: 100 }, (_, i) => ({
    match_hosts: ['api.example.test'],
    match_paths: dear.slice(i * 100, i * 100 + 100),
    headers,
  })),
);
const zs = `/${'z'.repeat(8000)}`;
report('10,000 path patterns at every limit, 8 KiB, none', 200, () => worst.decide(api, zs));
report('the same in three spellings', 200, () => worst.decide(api, `${zs}%7a;%3f`));

function texts(count: number, text: (i: number) => string): string[] {
  return Array.from({ length: count }, (_, i) => text(i));
}

function policyOf(rules: readonly unknown[]): Policy {
  const parsed = parseProxyConfig({ rules });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues[0]));
  const compiled = compileProxyConfig(parsed.value, () => undefined, 1);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues[0]));
  return compiled.value;
}

function authorityOf(text: string): Authority {
  const authority = parseAuthority(text);
  if (typeof authority === 'string') throw new Error(authority);
  return authority;
}

function report(name: string, count: number, decide: (i: number) => unknown): void {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const start = process.cpuUsage();
    for (let i = 0; i < count; i += 1) decide(i);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / count;
  }).toSorted((a, b) => a - b);
  const [least = 0, median = 0, most = 0] = [rounds[0], rounds[ROUNDS >> 1], rounds[ROUNDS - 1]];
  console.log(`${median.toFixed(3).padStart(9)} µs  (${least.toFixed(3)} to ${most.toFixed(3)})  ${name}`);
}
