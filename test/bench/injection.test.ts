// The benchmark itself: its arithmetic, its definition of latency, and the output and clean-up of a run. The figures of such
// a short run mean nothing.
// @module-tag long
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createResponseReader } from '../../bench/support/response-reader.ts';
import { type Line, createClosedLoop, createConstantRate, dispatch } from '../../bench/support/arrivals.ts';
import { idOf, requestHeads } from '../../bench/support/heads.ts';
import { percentile, percentilesOf, spreadOf } from '../../bench/support/percentiles.ts';
import { createPackage } from '../support/program-package.ts';
import { type Scratch, createScratch } from '../support/scratch.ts';
import { SpawnedProcess, projectRoot, runToEnd } from '../support/spawned-process.ts';

describe('percentiles', () => {
  const thousand = Float64Array.from({ length: 1000 }, (_, i) => i + 1);

  it('are samples, by nearest rank', () => {
    const expected = { count: 1000, p50: 500, p90: 900, p99: 990, p999: 999, max: 1000 };
    expect(percentilesOf([thousand])).toEqual(expected);
    expect(percentilesOf([thousand.subarray(0, 400).toReversed(), thousand.subarray(400)])).toEqual(expected);
  });

  it('are the largest sample when there are few samples', () => {
    expect([0.5, 0.9, 0.99].map((share) => percentile([1, 2, 3], share))).toEqual([2, 3, 3]);
    expect(percentile([7], 0.01)).toBe(7);
  });

  it('have medians between the two in the middle', () => {
    expect(spreadOf([4, 1, 3, 2])).toEqual({ median: 2.5, low: 1, high: 4 });
    expect(spreadOf([9, 1, 5])).toEqual({ median: 5, low: 1, high: 9 });
  });
});

describe('a server that stalls for 100 ms', () => {
  /** One connection to a server that responds after 1 ms, but stalls at the fifth request; with a controlled clock. */
  function latenciesUnder(arrivalsOf: (startMs: number) => ReturnType<typeof createClosedLoop>): number[] {
    let nowMs = 0;
    let response: { atMs: number; onResponse: () => void } | undefined;
    let asked = 0;
    const line: Line = {
      exchange(onResponse) {
        asked += 1;
        response = { atMs: nowMs + (asked === 5 ? 100 : 1), onResponse };
      },
    };
    const latencies: number[] = [];
    const over = new AbortController();
    const onFinished = (): void => over.abort();
    const now = (): number => nowMs;
    const { pump } = dispatch({
      lines: [line],
      arrivals: arrivalsOf(0),
      now,
      latencies,
      delays: [],
      onFinished,
    });
    for (; !over.signal.aborted; nowMs += 0.5) {
      if (response && response.atMs <= nowMs) {
        const { onResponse } = response;
        response = undefined;
        onResponse();
      }
      pump();
    }
    return latencies;
  }

  it('is charged at a constant rate for every request that was due during the stall', () => {
    const latencies = latenciesUnder((startMs) => createConstantRate(startMs, 500, 100));
    expect(latencies).toHaveLength(100);
    expect(latencies.slice(0, 8)).toEqual([1, 1, 1, 1, 100, 99, 98, 97]);
    expect(latencies.filter((latency) => latency > 50)).toHaveLength(50);
  });

  it('is charged once in a closed loop, which is why both are measured', () => {
    const latencies = latenciesUnder(() => createClosedLoop(200));
    expect(latencies.filter((latency) => latency > 1)).toEqual([100]);
  });
});

describe('a response', () => {
  const response = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-N: 1\r\n\r\nok');
  const other = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes');
  const refusal = Buffer.from('HTTP/1.1 500 Wrong\r\nContent-Length: 2\r\n\r\nno');

  it.each([1, 7, 1000])('is complete with its last byte, in pieces of %i', (size) => {
    const read = createResponseReader();
    for (const each of [response, response, other, response])
      for (let at = 0; at < each.length; at += size)
        expect(read(each.subarray(at, at + size))).toBe(at + size >= each.length);
  });

  it('that repeats the id of another request is an error', () => {
    const own = (id: string): Buffer =>
      Buffer.from(`HTTP/1.1 200 OK\r\nX-Request-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`);
    const read = createResponseReader(['a', 'b']);
    expect([read(own('a'), 0), read(own('b'), 1), read(own('a'), 0)]).toEqual([true, true, true]);
    expect(() => read(own('a'), 1)).toThrow('a response to b has another id');
  });

  it('other than a 200 is an error, the first or a later one', () => {
    expect(() => createResponseReader()(refusal)).toThrow('500 Wrong');
    const read = createResponseReader();
    read(response);
    expect(() => read(refusal)).toThrow('500 Wrong');
  });
});

describe('the heads of the load', () => {
  const heads = requestHeads('api.localhost:1', '/v1');

  it('are at least 64, each different, each with an id of its own', () => {
    expect(heads.length).toBeGreaterThanOrEqual(64);
    expect(new Set(heads.map((head) => head.length)).size).toBeGreaterThan(20);
    expect(new Set(heads).size).toBe(heads.length);
    expect(new Set(heads.map(idOf)).size).toBe(heads.length);
  });
});

describe('npm run bench', () => {
  let scratch: Scratch;
  const bench = join(projectRoot, 'bench', 'injection.ts');
  const args = (): string[] => [bench, '--tiny', '--json', '--package', scratch.path];

  beforeAll(async () => {
    scratch = await createScratch();
    await createPackage(scratch.path);
  });
  afterAll(() => scratch[Symbol.asyncDispose]());

  it('prints one object with --json: ratios at its root, and both sides of each', async () => {
    const { code, stdout, stderr } = await runToEnd(process.execPath, args());
    expect(code, stderr).toBe(0);
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
    const report = JSON.parse(stdout);
    const peers = (...names: string[]): string[] =>
      names.filter((name) => report.versions[name] !== undefined);
    const withNginx = [
      'cpu_vs_nginx_h1_32',
      'h2_4x8_vs_nginx',
      'p50_added_vs_nginx_1',
      'p99_added_vs_nginx_1',
      'tunnel_8_vs_nginx',
    ];
    const always = ['callback_hit_vs_rule', 'rss_idle_mb', 'rss_loaded_mb', 'start_ms', 'start_vs_node'];
    const measurable = [...always, ...peers('nginx').flatMap(() => withNginx)];
    // What one round adds may be zero or negative: such a ratio is absent.
    const noisy = ['p50_added_vs_nginx_1', 'p99_added_vs_nginx_1'];
    const keys = Object.keys(report.ratios);
    expect(measurable).toEqual(expect.arrayContaining(keys));
    expect(keys).toEqual(expect.arrayContaining(measurable.filter((key) => !noisy.includes(key))));
    for (const key of keys) {
      expect(report.ratios[key]).toBeGreaterThan(0);
      expect(report.rounds[key]).toHaveLength(1);
      expect(report.sides[key].ours.median).toBeGreaterThan(0);
    }
    for (const key of keys.filter((each) => each.includes('_vs_')))
      expect(report.sides[key].theirs.median).toBeGreaterThan(0);
    expect(report.ratios.rss_idle_mb).toBeGreaterThan(10);
    expect(report.ratios.start_ms).toBeGreaterThan(10);
    const under = (names: readonly string[], loads: readonly string[]): string[] =>
      names.flatMap((name) => loads.map((load) => `${name} ${load}`));
    const expected = [
      ...under(
        ['direct', 'relay', 'tunnel', 'intercepted', 'rule', 'callback', ...peers('nginx')],
        ['h1_1', 'h1_32', 'rate', 'tunnel_8'],
      ),
      ...under(['direct', 'rule', ...peers('nginx', 'haproxy')], ['h2_4x8']),
      ...under(['node', 'rule', 'relay', ...peers('nginx', 'haproxy')], ['start']),
      ...under(['rule'], ['start_cold']),
    ];
    type Row = { subject: string; load: string; figures: Record<string, { median: number }> };
    const rows: Row[] = report.questions.flatMap(({ rows: each }: { rows: Row[] }) => each);
    const found = rows.map(({ subject, load }) => `${subject} ${load}`);
    // A subject that is too slow for the constant rate is left out of it, with a note.
    expect(expected).toEqual(expect.arrayContaining(found));
    const notPaced = expected.filter((each) => !each.endsWith(' rate'));
    expect(found).toEqual(expect.arrayContaining(notPaced));
    for (const { load, figures } of rows)
      if (!load.startsWith('start')) expect(figures['p50_ms']?.median).toBeGreaterThan(0);
    expect(report).toMatchObject({ callback_calls: 1, suite: expect.stringContaining('TLSv1.3') });
  }, 60_000);

  it('leaves no process behind when it is interrupted', async () => {
    await using child = new SpawnedProcess(process.execPath, args());
    await vi.waitUntil(() => child.stderr.includes('warming up'), 40_000);
    const pids = [...(/processes (.*)/.exec(child.stderr)?.[1]?.matchAll(/ (\d+)/g) ?? [])].map(
      ([, pid]) => pid,
    );
    expect(pids.length).toBeGreaterThanOrEqual(3);
    child.kill('SIGINT');
    expect(await child.exited).toMatchObject({ code: 130 });
    expect(child.stderr).toMatch(/bench: interrupted by SIGINT\n$/);
    expect(pids.filter((pid) => isRunning(Number(pid)))).toEqual([]);
  }, 60_000);
});

function isRunning(pid: number): boolean {
  const file = `/proc/${pid}/stat`;
  return existsSync(file) && !/\) Z /.test(readFileSync(file, 'utf8'));
}
