// What every file must be: short, opened by a comment that says what it is for, and named for what is inside.
import { basename, dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSources } from './source-tree.ts';

const MAX_LINES = 300;
const MAX_FILES = 20;
/** Tables of data, which are long because the world is. */
const DATA_TABLES: readonly string[] = [];

/** An adapter may be nothing but a re-export. */
const ADAPTERS: readonly string[] = ['src/base/schema.ts'];

const product = readSources('src/**/*.ts');
const everything = [
  ...product,
  ...readSources('{test,scripts,bench,interop/clients}/**/*.ts'),
  ...readSources('bin/*.js'),
];

const NAMELESS = /^(types?|utils?|helpers?|common|misc|index|interfaces?|constants|shared|lib)\.ts$/;
const SUFFIXES = /-(manager|handler|service|helper|util|impl|base)\.ts$/;

describe('the files', () => {
  it('exist', () => expect(everything.length).toBeGreaterThan(20));

  it(`have at most ${MAX_LINES} lines in src`, () => {
    const lines = product.map(({ path, text }) => [path, text.split('\n').length - 1] as const);
    expect(lines.filter(([path, count]) => count > MAX_LINES && !DATA_TABLES.includes(path))).toEqual([]);
  });

  it(`are at most ${MAX_FILES} in a folder of src`, () => {
    const folders = Map.groupBy(product, ({ path }) => dirname(path));
    const crowded = [...folders].filter(([, files]) => files.length > MAX_FILES);
    expect(crowded.map(([folder, files]) => [folder, files.length])).toEqual([]);
  });

  it('open with a comment that says what they are for', () => {
    // A test stands beside the file that it mirrors; its names say the rest.
    const explained = everything.filter(({ path }) => !path.endsWith('.test.ts'));
    const silent = explained.filter(({ text }) => !/^(#!.*\n)?\/\/ \S/.test(text));
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  it('have kebab-case names', () => {
    const named = everything.map(({ path }) => path);
    expect(named.filter((path) => !/^[a-z0-9-]+(\.test|\.d)?\.(ts|js)$/.test(basename(path)))).toEqual([]);
  });

  it('are named for what is inside', () => {
    const named = everything.map(({ path }) => path);
    expect(named.filter((path) => NAMELESS.test(basename(path)) || SUFFIXES.test(basename(path)))).toEqual(
      [],
    );
  });

  it('hold something of their own: no barrels', () => {
    const own = (text: string): string =>
      text.replaceAll(/\/\*[^]*?\*\/|\/\/.*$|^(import|export)\b[^'"();]*\bfrom '[^']+';$/gm, '').trim();
    expect(everything.filter(({ path, text }) => own(text) === '' && !ADAPTERS.includes(path))).toEqual([]);
  });
});
