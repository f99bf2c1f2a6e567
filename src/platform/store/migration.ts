// One migration of the schema, read from an SQL file. A released migration is never edited: every database stores the hash
// of its SQL.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

export type Migration = {
  /** 1, 2, 3, … without gaps. */
  readonly id: number;
  readonly name: string;
  /** Run by the owner in one transaction. Must grant `sallyport_app` what the platform needs at run time. */
  readonly sql: string;
};

const NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;
/** A line that is only a comment. It is neither run nor hashed, so that a comment can be corrected after a release. */
const COMMENT = /^[ \t]*--.*\n/gm;

/** Reads a file with a name such as `0003-listeners.sql`: the number and the name of the migration. */
export function readMigration(file: URL): Migration {
  const path = fileURLToPath(file);
  const [, number, name = ''] = NAME.exec(basename(path)) ?? [];
  if (number === undefined) throw new Error(`${path} must have a name such as 0003-listeners.sql`);
  return {
    id: Number(number),
    name: name.replaceAll('-', ' '),
    sql: readFileSync(path, 'utf8').replaceAll(COMMENT, ''),
  };
}

/** In the order of their numbers, which have no gaps: two changes that took the same number are found here. */
export function readMigrations(files: readonly URL[]): readonly Migration[] {
  const migrations = files.map(readMigration).toSorted((a, b) => a.id - b.id);
  for (const [index, { id, name }] of migrations.entries())
    if (id !== index + 1)
      throw new Error(
        `The migration ${id} (${name}) must have the number ${index + 1}: numbers have no gaps`,
      );
  return migrations;
}
