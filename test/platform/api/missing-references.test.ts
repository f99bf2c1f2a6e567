import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import { toMissingReference } from '../../../src/platform/api/missing-references.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

function broken(constraint: string): Error {
  return Object.assign(new Error('violates foreign key constraint'), { code: '23503', constraint });
}

describe('a broken reference', () => {
  it('is named by what is missing, for every foreign key of the schema', async () => {
    const { rows } = await sql<{ readonly name: string; readonly target: string }>`
      select conname as name, confrelid::regclass::text as target from pg_constraint
      where contype = 'f' and connamespace = 'public'::regnamespace`.execute(database.owner.db);
    expect(rows.length).toBeGreaterThan(8);
    for (const { name, target } of rows) {
      const error = broken(name);
      const found = toMissingReference(error);
      const kind = found instanceof DomainError ? found.kind : 'a bug';
      const expected: Readonly<Record<string, readonly string[]>> = {
        workspaces: ['forbidden'],
        proxy_profiles: ['not_found'],
        snapshots: ['unusable'],
        sessions: ['unauthenticated'],
        // The box of a token is locked by the same transaction.
        boxes: ['a bug'],
        organization_members: ['not_found'],
        users: ['not_found'],
        // Nothing deletes an organization.
        organizations: ['a bug'],
        // The key of a session is locked by the same transaction.
        api_keys: ['a bug'],
        // Nothing deletes a master key.
        vault_master_keys: ['a bug'],
        agent_assistants: ['not_found'],
        agent_threads: ['not_found'],
        listeners: ['unusable'],
        deployments: ['not_found'],
        revisions: ['not_found'],
        // Nothing deletes a destination of exports, or a schedule that makes others.
        ...{ export_destinations: ['a bug'], exports: ['a bug'] },
        // Written with what refers to them, and set to null when they go.
        ...{ builds: ['a bug'], runners: ['a bug'] },
        // The user of a run is written with it.
        agent_runs: ['a bug'],
      };
      expect([name, expected[target]]).toEqual([name, [kind]]);
    }
  });

  it('that nobody thought of, and every other error, stays what it is', () => {
    for (const error of [broken('exports_destination_id_fkey'), new Error('x'), undefined])
      expect(toMissingReference(error)).toBe(error);
  });
});
