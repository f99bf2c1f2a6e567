// Differential test of our parser and node:http: both read the fixture rows and up to 100,000 mutations of them. Every
// disagreement must have a listed reason, and every listed reason must occur: one that never occurs is obsolete.
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
import { runs } from '../support/run-size.ts';
import { createRandom, mutate, type Random } from './mutation.ts';
import { type Reading, readByClient, readByServer } from './node-oracle.ts';

const MUTATIONS_PER_TEST = runs(50_000, 15_000);
const BATCH = 1000;
const MAX_SEED_BYTES = 2000;
const TIMEOUT_MS = 120_000;

type Case = { readonly wire: string; readonly bytes: Buffer; readonly method: string };

const occurred: Set<string> = new Set();

describe('our parser and node:http', () => {
  it('agree on mutated requests, except for listed reasons', { timeout: TIMEOUT_MS }, async () => {
    const rows = requestRows.map((row) => ({ ...row, method: '' }));
    const readWithNode = (cases: readonly Case[]): Promise<Reading[]> =>
      readByServer(cases.map(({ bytes }) => bytes));
    expect(await findUnexplained(rows, 1, ({ bytes }) => readRequests(bytes), readWithNode)).toEqual([]);
  });

  it('agree on mutated responses, except for listed reasons', { timeout: TIMEOUT_MS }, async () => {
    // Excluded: node's client stops parsing after any response to CONNECT, even after an interim response or an error.
    const rows = responseRows.filter(({ method }) => method !== 'CONNECT');
    expect(
      await findUnexplained(rows, 2, ({ bytes, method }) => readResponse(bytes, method), readByClient),
    ).toEqual([]);
  });

  it('disagree at least once for every listed reason', () => {
    const listed = [...stricterReasons, ...laxerReasons].map(({ on }) => on);
    expect(listed.filter((on) => !occurred.has(on))).toEqual([]);
  });
});

async function findUnexplained(
  rows: readonly ResponseRow[],
  seed: number,
  readWithOurs: (testCase: Case) => Reading,
  readWithNode: (cases: readonly Case[]) => Promise<Reading[]>,
): Promise<string[]> {
  const random = createRandom(seed);
  const short = rows.filter(({ wire }) => wire.length > 0 && wire.length < MAX_SEED_BYTES);
  // Valid rows are listed three times: most mutations of an invalid row are rejected for the same reason as the row.
  const seeds = short.flatMap((row) => (row.verdict === 'accepted' ? [row, row, row] : [row]));
  const failures: string[] = [];
  for (let done = 0; done < MUTATIONS_PER_TEST; done += BATCH) {
    const mutations = Array.from({ length: BATCH }, () => createMutation(seeds, random));
    const cases = done === 0 ? [...short.map(createCase), ...mutations] : mutations;
    const nodeReadings = await readWithNode(cases);
    for (const [i, testCase] of cases.entries()) {
      const found = findDisagreement(
        readWithOurs(testCase),
        nodeReadings[i] ?? { messages: [], error: 'not read' },
      );
      if (found !== undefined && !isExplained(found, testCase)) {
        failures.push(JSON.stringify([found.kind, found.on, testCase.wire]));
      }
    }
  }
  return failures;
}

function isExplained(found: Disagreement, { wire }: Case): boolean {
  const reason = findReason(found, wire);
  if (reason !== undefined) occurred.add(reason.on);
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
