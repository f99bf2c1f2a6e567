// The PostgreSQL that Debian packages: another major version than the npm package, as an external server may have.
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { PostgresPrograms } from '../../src/platform/store/embedded/programs.ts';

const DIRECTORY = '/usr/lib/postgresql/15/bin';

export async function hasDebianPostgres(): Promise<boolean> {
  return access(join(DIRECTORY, 'postgres')).then(
    () => true,
    () => false,
  );
}

export async function debianPrograms(): Promise<PostgresPrograms> {
  if (!(await hasDebianPostgres()))
    throw new Error(`${DIRECTORY} does not exist: apt-get install postgresql-15`);
  return {
    initdb: join(DIRECTORY, 'initdb'),
    postgres: join(DIRECTORY, 'postgres'),
    libraries: undefined,
    major: 15,
  };
}
