import { createHash } from 'node:crypto';
import { globSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readAllMigrations } from '../../../src/platform/migrations.ts';
import { readMigration, readMigrations } from '../../../src/platform/store/migration.ts';
import { createScratch } from '../../support/scratch.ts';
import { projectRoot } from '../../support/spawned-process.ts';

/** What databases of released versions store. A new migration is added here when it is released. */
const RELEASED: readonly (readonly [id: number, name: string, hash: string])[] = [
  [1, 'identity', 'cbcae3a81727a005189cde315e28224665f73d1199dba5b6b19247b693a5aeb7'],
  [2, 'audit', 'eaf582d375c7833ead1e284876fb2d39231002042c2429d94c249d9e5064028c'],
  [3, 'listeners', 'c97b332109bb6521f132c577f48a0e19b280ecf39f763bc7736cdca386f63ddd'],
  [4, 'sandbox records', '69de8b89535fe4dbde842b3b94bf5843fe92374577f6b5b0758a2789114b0372'],
  [5, 'audit settling', 'efd061f31db694daa93ab7210b0547317d3034ed3f502fb72781b9fb6c0fc296'],
  [6, 'key makers', 'e67bef3ced0eec0618e19edec63243e9cb8c19188889f1c74f5d9b8981236230'],
];

describe('the migrations', () => {
  it('are those that databases of released versions have, byte for byte', () => {
    const found = readAllMigrations().map(({ id, name, sql }) => [
      id,
      name,
      createHash('sha256').update(sql).digest('hex'),
    ]);
    expect(found.slice(0, RELEASED.length)).toEqual(RELEASED);
  });

  it('are all files with SQL', () => {
    expect(globSync('src/**/*.sql', { cwd: projectRoot })).toHaveLength(readAllMigrations().length);
  });
});

describe('the file of a migration', () => {
  async function write(folder: string, name: string, text: string): Promise<URL> {
    await writeFile(join(folder, name), text);
    return pathToFileURL(join(folder, name));
  }

  it('gives number, name and SQL, without the lines that are only a comment', async () => {
    await using scratch = await createScratch();
    const text = "-- why\ncreate table a (id int);\n  -- also why\nselect '-- text'; -- beside\n";
    const file = await write(scratch.path, '0012-two-words.sql', text);
    const sql = "create table a (id int);\nselect '-- text'; -- beside\n";
    expect(readMigration(file)).toEqual({ id: 12, name: 'two words', sql });
  });

  it.each(['12-a.sql', '0012_a.sql', '0012-A.sql', '0012-a.txt'])('is rejected as %s', async (name) => {
    await using scratch = await createScratch();
    const file = await write(scratch.path, name, 'select');
    expect(() => readMigration(file)).toThrow(/must have a name such as 0003-listeners.sql/);
  });

  it.each([
    ['missing', ['0001-a.sql', '0003-c.sql'], /migration 3 \(c\) must have the number 2/],
    ['used twice', ['0001-a.sql', '0001-b.sql'], /migration 1 \(b\) must have the number 2/],
  ])('is rejected when a number is %s', async (_, names, message) => {
    await using scratch = await createScratch();
    const files = await Promise.all(names.map((name) => write(scratch.path, name, 'select')));
    expect(() => readMigrations(files)).toThrow(message);
  });

  it('may be listed in any order', async () => {
    await using scratch = await createScratch();
    const files = [
      await write(scratch.path, '0002-b.sql', 'select'),
      await write(scratch.path, '0001-a.sql', 'select'),
    ];
    expect(readMigrations(files).map(({ id }) => id)).toEqual([1, 2]);
  });
});
