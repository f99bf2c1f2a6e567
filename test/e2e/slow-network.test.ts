// Hosts behind a slow or lossy path: a connection whose first SYNs are lost is established by a later one, whatever its
// address family, and a host that dies while its response is due is noticed by TCP keep-alive. Everything runs in network
// namespaces of the test's own.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runToEnd } from '../support/spawned-process.ts';
import { canCreateNetwork, unshare } from '../support/silent-network.ts';
import type { SlowResult, SlowRow } from './slow-network-program.ts';

const V4 = '8.8.1.';
const V6 = '2606:4700::';
/** When the SYN is sent that the host responds to, by how many were lost before. */
const SYN_MS: readonly number[] = [0, 1_000, 3_000];

/** The first address responds late. One behind it that never does must not end its attempt. */
const families: readonly (readonly [name: string, addresses: (id: number) => readonly string[]])[] = [
  ['IPv4', (id) => [`${V4}${id}`]],
  ['IPv6', (id) => [`${V6}${id}`]],
  ['IPv4, before IPv6 that never responds', (id) => [`${V4}${id}`, `${V6}${id}`]],
  ['IPv6, before IPv4 that never responds', (id) => [`${V6}${id}`, `${V4}${id}`]],
];

const slowRows: readonly SlowRow[] = [1, 2].flatMap((lostSyns) =>
  families.map(([family, addresses], i): SlowRow => {
    const id = 10 * lostSyns + i;
    const by = (i + lostSyns) % 2 === 0 ? 'rule' : 'tunnel';
    const own = addresses(id);
    const name = `${family}, ${lostSyns} lost, ${by}`;
    return { name, by, lostSyns, host: `h${id}.test`, addresses: own, responds: own[0] ?? '' };
  }),
);

async function runInNamespace(rows: readonly SlowRow[]): Promise<readonly SlowResult[]> {
  const [command = '', ...args] = unshare;
  const program = join(import.meta.dirname, 'slow-network-program.ts');
  const ended = await runToEnd(command, [...args, process.execPath, program, JSON.stringify(rows)]);
  if (ended.code !== 0) throw new Error(`${ended.stdout}\n${ended.stderr}`);
  return JSON.parse(ended.stdout) as SlowResult[];
}

describe.runIf(canCreateNetwork())('a slow network', () => {
  // Both wait, each in a network of its own.
  it.concurrent('of hosts that respond to their second or third SYN is waited for', {
    tags: ['long'],
  }, async () => {
    const results = await runInNamespace(slowRows);
    const seen = results.map(({ name, seen: got }) => `${name}: ${got}`);
    expect(seen).toEqual(slowRows.map(({ name }) => `${name}: 200`));
    // No sooner: else the SYNs were not lost.
    for (const [i, { waitedMs }] of results.entries())
      expect(waitedMs).toBeGreaterThan(0.9 * (SYN_MS[slowRows[i]?.lostSyns ?? 0] ?? 0));
  });

  // Keep-alive begins after 30 s and gives up after 10 probes, a second apart.
  it.concurrent('whose host dies while its response is due is noticed', {
    tags: ['long'],
    timeout: 120_000,
  }, async () => {
    const rows = families.slice(0, 2).map(([name, addresses], i): SlowRow => {
      const [responds = ''] = addresses(i + 1);
      const host = `h${i}.test`;
      return { name, by: 'rule', host, addresses: [responds], responds, lostSyns: 0, dies: true };
    });
    const results = await runInNamespace(rows);
    expect(results.map(({ seen }) => seen)).toEqual(rows.map(() => '502 upstream_closed: ETIMEDOUT'));
  });
});
