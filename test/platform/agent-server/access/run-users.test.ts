// The user of a run is sealed for that run, opens for no other, and is gone when the run has ended.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  deleteRunUser,
  insertRunUser,
  openRunUser,
  type RunUser,
  sealRunUser,
} from '../../../../src/platform/agent-server/access/run-users.ts';
import {
  AGENT_ORGANIZATION_ID,
  AGENT_WORKSPACE_ID,
} from '../../../../src/platform/agent-server/configuration/settings.ts';
import '../../../../src/platform/agent-server/assistants/assistant-rows.ts';
import '../../../../src/platform/agent-server/runs/run-rows.ts';
import '../../../../src/platform/agent-server/threads/thread-rows.ts';
import { createMasterKeys } from '../../../../src/platform/vault/master-key-registry.ts';
import { createVault, type Vault } from '../../../../src/platform/vault/vault.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

const TOKEN = 'a-token-of-the-user-b2f1';
const MAPPING: RunUser = {
  user: {
    identity: 'ada',
    display_name: 'Ada',
    is_authenticated: true,
    permissions: ['read'],
    token: TOKEN,
    text: 'also \0 and \ud800',
  },
  headers: { 'x-team': 'one', 'user-agent': 'test' },
};

let database: TestDatabase;
let scratch: Scratch;
let vault: Vault;

beforeAll(async () => {
  [database, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
  const masterKeyFile = join(scratch.path, 'vault-master.key');
  await createMasterKeys(database.store, { masterKeyFile, isProvided: false });
  vault = createVault({ masterKeyFile });
  const { db } = database.store;
  const organization = { id: AGENT_ORGANIZATION_ID, display_name: 'Agents', plan: 'none', config: '{}' };
  await db.insertInto('organizations').values(organization).execute();
  const workspace = {
    id: AGENT_WORKSPACE_ID,
    organization_id: AGENT_ORGANIZATION_ID,
    display_name: 'Agents',
    tenant_handle: null,
  };
  await db.insertInto('workspaces').values(workspace).execute();
});
afterAll(async () => {
  await database?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

/** A run with its user. */
async function createRun(): Promise<string> {
  const runId = randomUUID();
  await database.store.write(async (trx) => {
    const insertAssistant = trx
      .insertInto('agent_assistants')
      .values({ graph_id: 'agent', name: 'agent', description: null });
    const { assistant_id } = await insertAssistant.returning('assistant_id').executeTakeFirstOrThrow();
    const insertThread = trx.insertInto('agent_threads').values({ metadata: '{}' }).returning('thread_id');
    const { thread_id } = await insertThread.executeTakeFirstOrThrow();
    const run = {
      ...{ run_id: runId, thread_id, assistant_id, assistant_version: 1, graph_id: 'agent' },
      ...{ kwargs: '{}', multitask_strategy: 'enqueue' as const },
      ...{ lease_owner: null, lease_until: null, cancellation: null, output: null, ended_at: null },
    };
    await trx.insertInto('agent_runs').values(run).execute();
    await insertRunUser(trx, runId, await sealRunUser(trx, vault, runId, MAPPING));
  });
  return runId;
}

const find = (runId: string): Promise<RunUser | undefined> => openRunUser(database.store.db, vault, runId);

it('opens as it was sealed, and its bytes hold no part of it', async () => {
  const runId = await createRun();
  expect(await find(runId)).toEqual(MAPPING);
  const { sealed } = await database.store.db
    .selectFrom('agent_run_users')
    .select('sealed')
    .where('run_id', '=', runId)
    .executeTakeFirstOrThrow();
  for (const part of [TOKEN, 'ada', 'identity']) expect(sealed.includes(part)).toBe(false);
});

it('does not open for another run', async () => {
  const [one, other] = [await createRun(), await createRun()];
  await database.owner.db
    .updateTable('agent_run_users')
    .set(
      ({ selectFrom }) =>
        ({
          sealed: selectFrom('agent_run_users').select('sealed').where('run_id', '=', other),
        }) as never,
    )
    .where('run_id', '=', one)
    .execute();
  expect(await find(one)).toBeUndefined();
  expect(await find(other)).toEqual(MAPPING);
});

it('does not open when its bytes were changed', async () => {
  const runId = await createRun();
  await database.owner.db
    .updateTable('agent_run_users')
    .set({ sealed: Buffer.from([1, 2, 3]) } as never)
    .where('run_id', '=', runId)
    .execute();
  expect(await find(runId)).toBeUndefined();
});

it('is gone with the end of the run, and with the run', async () => {
  const [ended, deleted] = [await createRun(), await createRun()];
  await database.store.write((trx) => deleteRunUser(trx, ended));
  await database.store.db.deleteFrom('agent_runs').where('run_id', '=', deleted).execute();
  expect(await find(ended)).toBeUndefined();
  expect(await find(deleted)).toBeUndefined();
});
