// The faults that take little time and need nothing from the machine; `npm run chaos` runs all of them.
// @module-tag long
import { describe, expect, it } from 'vitest';
import { chaosRows } from './faults.ts';
import { runRow } from './fault-run.ts';

/** The number of faults in the catalogue's list, without added ones. */
const LISTED = 34;

/** `npm run chaos` checks the promised limit; here a start alone may take seconds on a busy machine. */
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

it(`${LISTED} faults are listed, with unique names`, () => {
  expect(chaosRows.filter(({ isAdded }) => !isAdded)).toHaveLength(LISTED);
  expect(new Set(chaosRows.map(({ name }) => name)).size).toBe(chaosRows.length);
});

describe('a process survives a fault, or ends as specified, and recovers', () => {
  const rows = chaosRows.filter(({ name }) => QUICK.includes(name));
  it.each(rows)('$name: $expects', async (row) => {
    expect(await runRow(row, MAX_RECOVERY_MS)).toMatchObject({ seen: row.expects, problems: [] });
  });
  it('every quick fault is in the list', () => expect(rows).toHaveLength(QUICK.length));
});
