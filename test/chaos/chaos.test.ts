// The faults that take little time and nothing of the machine, as `npm run chaos` runs all of them.
import { describe, expect, it } from 'vitest';
import { chaosRows } from './faults.ts';
import { runRow } from './fault-run.ts';

/** What the catalogue lists, those that were added not counted. */
const LISTED = 34;

/** `npm run chaos` measures what is promised; here a start alone may take seconds, on a machine that is starved. */
const MAX_RECOVERY_MS = 15_000;

const QUICK: readonly string[] = [
  'upstream: refuse',
  'upstream: blackhole',
  'upstream: RST mid-body',
  'upstream: 1xx storm',
  'upstream: TLS expired mid-run',
  'local: EMFILE',
  'local: blocked log pipe',
  'local: master key wrong',
  'local: SIGTERM at load',
];

it(`${LISTED} faults are listed, each under a name of its own`, () => {
  expect(chaosRows.filter(({ isAdded }) => !isAdded)).toHaveLength(LISTED);
  expect(new Set(chaosRows.map(({ name }) => name)).size).toBe(chaosRows.length);
});

describe('a process outlives a fault, or ends as it should, and all is as before', () => {
  const rows = chaosRows.filter(({ name }) => QUICK.includes(name));
  it.each(rows)('$name: $expects', async (row) => {
    expect(await runRow(row, MAX_RECOVERY_MS)).toMatchObject({ seen: row.expects, faults: [] });
  });
  it('each of them is one of the list', () => expect(rows).toHaveLength(QUICK.length));
});
