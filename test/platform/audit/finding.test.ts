import { expect, it } from 'vitest';
import { type Finding, formatFinding } from '../../../src/platform/audit/finding.ts';

const finding: Finding = { kind: 'deleted', organizationId: 'o', seq: 4n, sentence: 'missing' };

it.each<[Partial<Finding>, string]>([
  [{}, 'deleted: organization o, event 4: missing'],
  [{ lastSeq: 4n }, 'deleted: organization o, event 4: missing'],
  [{ lastSeq: 6n }, 'deleted: organization o, events 4 to 6: missing'],
  [{ id: 'i' }, 'deleted: organization o, event 4 (i): missing'],
])('a finding with %o is one line', (change, line) =>
  expect(formatFinding({ ...finding, ...change })).toBe(line),
);
