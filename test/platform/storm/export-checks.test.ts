import { describe, expect, it } from 'vitest';
import { checkExports, type ExportedRun, type Stored, type StormExport } from './export-checks.ts';

const source = new Map([
  ['2026-11-20', ['a', 'b']],
  ['2026-11-21', ['c']],
]);
const files = new Map([
  ['one', ['a', 'b']],
  ['two', ['c']],
]);
const runs: readonly ExportedRun[] = [
  { status: 'COMPLETED', day: '2026-11-20', rowsWritten: 2, files: ['one'] },
  { status: 'COMPLETED', day: '2026-11-21', rowsWritten: 1, files: ['two'] },
];

function check(changed: Partial<StormExport>, stored: Partial<Stored> = {}): readonly string[] {
  const whole = { id: '1', status: 'COMPLETED', runs, ...changed };
  return checkExports([whole], source, { files, openUploads: [], ...stored });
}

function withRun(change: Partial<ExportedRun>): Partial<StormExport> {
  return { runs: runs.map((run, at) => (at === 0 ? { ...run, ...change } : run)) };
}

describe('the checks of exports', () => {
  it('find nothing where each day has its rows once', () => {
    expect(check({})).toEqual([]);
  });

  it.each<readonly [string, readonly string[]]>([
    ['it is FAILED', check({ status: 'FAILED' })],
    [
      'its runs are of 2026-11-20',
      check({ runs: runs.slice(0, 1) }, { files: new Map([['one', ['a', 'b']]]) }),
    ],
    ['the run of 2026-11-20 is RUNNING', check(withRun({ status: 'RUNNING' }))],
    ['the run of 2026-11-20 says that it has written 3 rows', check(withRun({ rowsWritten: 3 }))],
    [
      'the files of 2026-11-20 have 3 rows (2 different ones) of 2',
      check({}, { files: new Map([...files, ['one', ['a', 'b', 'b']]]) }),
    ],
    [
      'the files of 2026-11-20 have 1 rows (1 different ones) of 2',
      check({}, { files: new Map([...files, ['one', ['a']]]) }),
    ],
  ])('find that %s', (error, found) => {
    expect(found).toEqual([`export 1: ${error}`]);
  });

  it('find files that no run names, files that are not there, and uploads that are left', () => {
    expect(check({}, { files: new Map([...files, ['three', []]]) })).toEqual(['no run names the file three']);
    expect(check(withRun({ files: ['one', 'gone'] }))).toEqual([
      'export 1: the run of 2026-11-20 names gone, which is not there',
    ]);
    expect(check({}, { openUploads: ['one'] })).toEqual([
      'an upload of one was neither completed nor aborted',
    ]);
  });
});
