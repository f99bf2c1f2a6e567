// Every source has a test of its name in the mirrored folder, or the table of exceptions names the test that exercises it.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../support/spawned-process.ts';
import { testedElsewhere } from './mirror-exceptions.ts';

const sources = globSync('src/**/*.ts', { cwd: projectRoot }).filter((path) => !path.endsWith('.d.ts'));

const mirrorOf = (source: string): string => source.replace(/^src\//, 'test/').replace(/\.ts$/, '.test.ts');
const isPresent = (path: string): boolean => existsSync(join(projectRoot, path));

/** A test that starts the program exercises what no import of the test leads to. */
const STARTS_THE_PROGRAM = 'test/support/spawned-process.ts';

const closures = new Map<string, ReadonlySet<string>>();

/** Every file of the project that `start` imports, at once or later. */
function loadedBy(start: string): ReadonlySet<string> {
  const known = closures.get(start);
  if (known !== undefined) return known;
  const found = new Set([start]);
  for (const path of found) {
    const text = readFileSync(join(projectRoot, path), 'utf8');
    for (const [, specifier = ''] of text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
      const imported = normalize(join(dirname(path), specifier));
      if (imported.endsWith('.ts') && isPresent(imported)) found.add(imported);
    }
  }
  closures.set(start, found);
  return found;
}

describe('the tests mirror the sources', () => {
  it('each source has a test of its name, or an entry in the table', () => {
    expect(sources.length).toBeGreaterThan(10);
    const missing = sources.filter((source) => !isPresent(mirrorOf(source)) && !(source in testedElsewhere));
    expect(missing, 'write the test, or name the one that exercises it in mirror-exceptions.ts').toEqual([]);
  });

  it('no entry of the table names a source that is gone or has a test of its name', () => {
    const entries = Object.keys(testedElsewhere);
    const superfluous = entries.filter((source) => !sources.includes(source) || isPresent(mirrorOf(source)));
    expect(superfluous, 'remove these entries from mirror-exceptions.ts').toEqual([]);
  });

  it('each entry names a test that imports the source, or starts the program', () => {
    const wrong = Object.entries(testedElsewhere).filter(([source, test]) => {
      if (!isPresent(test)) return true;
      const loaded = loadedBy(test);
      return !loaded.has(source) && !loaded.has(STARTS_THE_PROGRAM);
    });
    expect(wrong).toEqual([]);
  });
});
