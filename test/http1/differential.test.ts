// The fixture rows and 100,000 mutations of them, read by us and by node:http. Every disagreement must have a
// listed reason, and every listed reason must be met: a reason that never occurs explains nothing.
import { describe, expect, it } from 'vitest';
import {
  type Disagreement,
  findDisagreement,
  findReason,
  laxerReasons,
  stricterReasons,
} from './disagreement.ts';
import { requestRows } from './fixtures/requests.ts';
import { type ResponseRow, responseRows } from './fixtures/responses.ts';
import { readRequests, readResponse } from './message-reading.ts';
import { createRandom, mutate, type Random } from './mutation.ts';
import { type Reading, readByClient, readByServer } from './node-oracle.ts';

const MUTATIONS_OF_EACH = 50_000;
const BATCH = 1000;
const LONGEST_SEED_BYTES = 2000;
const TIMEOUT_MS = 120_000;

type Case = { readonly wire: string; readonly bytes: Buffer; readonly method: string };

const met: Set<string> = new Set();

describe('mutations, read by us and by node', () => {
  it('requests', { timeout: TIMEOUT_MS }, async () => {
    const rows = requestRows.map((row) => ({ ...row, method: '' }));
    const nodes = (cases: readonly Case[]): Promise<Reading[]> =>
      readByServer(cases.map(({ bytes }) => bytes));
    expect(await unexplained(rows, 1, ({ bytes }) => readRequests(bytes), nodes)).toEqual([]);
  });

  it('responses', { timeout: TIMEOUT_MS }, async () => {
    // Node's client hands its socket over after any response to CONNECT, an interim or a rejecting one too.
    const rows = responseRows.filter(({ method }) => method !== 'CONNECT');
    expect(
      await unexplained(rows, 2, ({ bytes, method }) => readResponse(bytes, method), readByClient),
    ).toEqual([]);
  });

  it('meet every listed reason', () => {
    const listed = [...stricterReasons, ...laxerReasons].map(({ on }) => on);
    expect(listed.filter((on) => !met.has(on))).toEqual([]);
  });
});

async function unexplained(
  rows: readonly ResponseRow[],
  seed: number,
  readOurs: (one: Case) => Reading,
  readNodes: (cases: readonly Case[]) => Promise<Reading[]>,
): Promise<string[]> {
  const random = createRandom(seed);
  const short = rows.filter(({ wire }) => wire.length > 0 && wire.length < LONGEST_SEED_BYTES);
  // Valid rows thrice: most mutations of an invalid one are refused for the reason for which it was.
  const seeds = short.flatMap((row) => (row.verdict === 'accepted' ? [row, row, row] : [row]));
  const failures: string[] = [];
  for (let done = 0; done < MUTATIONS_OF_EACH; done += BATCH) {
    const mutations = Array.from({ length: BATCH }, () => createMutation(seeds, random));
    const cases = done === 0 ? [...short.map(createCase), ...mutations] : mutations;
    const nodes = await readNodes(cases);
    for (const [i, one] of cases.entries()) {
      const found = findDisagreement(readOurs(one), nodes[i] ?? { messages: [], error: 'not read' });
      if (found !== undefined && !isExplained(found, one)) {
        failures.push(JSON.stringify([found.kind, found.on, one.wire]));
      }
    }
  }
  return failures;
}

function isExplained(found: Disagreement, { wire }: Case): boolean {
  const reason = findReason(found, wire);
  if (reason !== undefined) met.add(reason.on);
  return reason !== undefined;
}

function createMutation(rows: readonly ResponseRow[], random: Random): Case {
  const row = rows[random(rows.length)];
  if (row === undefined) throw new Error('there are no rows to mutate');
  return createCase({ ...row, wire: mutate(row.wire, random) });
}

function createCase({ wire, method }: ResponseRow): Case {
  return { wire, method, bytes: Buffer.from(wire, 'latin1') };
}
