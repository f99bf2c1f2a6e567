// Pages of runs over HTTP, one after another: each kind of page from its first to its last cursor and again, until there are enough.
import { connectOnce } from '../../src/platform/store/database.ts';
import type { PlatformScene } from '../platform/scene.ts';
import { ownerOf } from '../platform/servers.ts';
import { percentilesOf } from '../support/percentiles.ts';
import { fillRuns } from './filled-runs.ts';

export type QueryOptions = {
  readonly runs: number;
  readonly days: number;
  /** Of each kind. */
  readonly pages: number;
};

/** The first pages open connections, and fill caches. */
const WARM_UP_PAGES = 20;

export async function measureQueries(
  { installation, platform: { port } }: PlatformScene,
  { runs, days, pages }: QueryOptions,
): Promise<readonly string[]> {
  const { workspaceId, key } = installation;
  const startMs = performance.now();
  const { projectId } = await connectOnce(await ownerOf(installation), (client) =>
    fillRuns(client, { workspaceId, runs, days }),
  );
  const filled = `${runs} runs over ${days} days, stored in ${((performance.now() - startMs) / 1000).toFixed(0)} s`;
  const ask: Ask = (body) => askPage(port, key, body);
  const lines = [`${filled}; milliseconds of a page of 100 runs with all fields, one client`];
  for (const [name, body] of kindsOf(projectId)) {
    await measure(ask, body, WARM_UP_PAGES);
    const { p50, p99, max } = percentilesOf([await measure(ask, body, pages)]);
    const row = [p50, p99, max].map((ms) => ms.toFixed(1).padStart(8)).join('');
    lines.push(`  ${name.padEnd(52)}${row}`);
  }
  return [lines[0] ?? '', `  ${''.padEnd(52)}     p50     p99     max`, ...lines.slice(1)];
}

type Body = Readonly<Record<string, unknown>>;
type Page = { readonly runs: readonly unknown[]; readonly cursors: { readonly next: string | null } };
type Ask = (body: Body) => Promise<Page>;

function kindsOf(projectId: string): readonly (readonly [name: string, body: Body])[] {
  const session = [projectId];
  const from = new Date(Date.now() - 24 * 3600 * 1000).toISOString();
  return [
    ['of a project', { session }],
    ['of a project, of the last day', { session, start_time: from }],
    [
      'of a project, without payloads',
      { session, select: ['name', 'run_type', 'status', 'start_time', 'trace_id'] },
    ],
    ['of its traces', { session, is_root: true }],
    ['of its errors, one in a hundred', { session, error: true }],
    ['by metadata', { session, filter: `and(eq(metadata_key, "env"), eq(metadata_value, "prod"))` }],
    ['by the roots of traces', { session, run_type: 'llm', trace_filter: `has(metadata, '{"env":"prod"}')` }],
    ['of all projects', {}],
  ];
}

/** From page to page, and from the beginning after the last. */
async function measure(ask: Ask, body: Body, pages: number): Promise<Float64Array> {
  const latencies = new Float64Array(pages);
  let cursor: string | null = null;
  for (let at = 0; at < pages; at += 1) {
    const startMs = performance.now();
    const { runs, cursors }: Page = await ask({ ...body, ...(cursor === null ? {} : { cursor }) });
    latencies[at] = performance.now() - startMs;
    if (runs.length === 0) throw new Error(`a page has no runs: ${JSON.stringify(body)}`);
    cursor = cursors.next;
  }
  return latencies;
}

async function askPage(port: number, key: string, body: Body): Promise<Page> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/runs/query`, {
    method: 'POST',
    headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`a page has status ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as Page;
}
