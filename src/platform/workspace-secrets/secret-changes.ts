// Changes of the secrets of a workspace: what a caller may send, and how it is stored. Values leave the schema as Secrets, and no
// issue repeats a name or a value: a caller who swaps the two by mistake sends the value as a name.
import { InvalidInput } from '../../base/domain-error.ts';
import { type Issue, z } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import { noWorkspace } from '../identity/authorization.ts';
import type { Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import type { Vault } from '../vault/vault.ts';
import { placeOf } from './contract.ts';

/** Of one request, each of which is one transaction and one event. */
const MAX_CHANGES = 100;
/** Those of a sandbox in a sidecar, which gets them. */
const MAX_SECRETS = 1_000;
const MAX_TOTAL_BYTES = 1_048_576;
const MAX_VALUE_BYTES = 65_536;

const NAME_RULE =
  'A key must consist of letters, digits and underscores, at most 128, and must not begin with a digit';
const REPEATED = 'This key is repeated';

const key = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, NAME_RULE);
const value = z
  .string()
  .min(1, { error: 'Input must not be empty; null deletes', abort: true })
  .max(MAX_VALUE_BYTES, { abort: true })
  .refine((text) => Buffer.byteLength(text) <= MAX_VALUE_BYTES, {
    error: `Input must have at most ${MAX_VALUE_BYTES} bytes`,
    abort: true,
  })
  .transform((text) => new Secret(text));

/** In the order of the request; null deletes. Fields that are not known here are ignored: clients may be newer. */
export const secretChanges = z
  .array(z.object({ key, value: value.nullable().describe('null deletes the secret') }))
  .max(MAX_CHANGES)
  .superRefine((changes, context) => {
    const seen = new Set<string>();
    for (const [index, change] of changes.entries()) {
      if (seen.has(change.key)) context.addIssue({ code: 'custom', path: [index, 'key'], message: REPEATED });
      seen.add(change.key);
    }
  });

export type SecretChanges = z.output<typeof secretChanges>;

/** A secret that was created, replaced or deleted. */
export type ChangedSecret = { readonly id: string; readonly key: string };

/** All of them or none. Throws InvalidInput when the workspace would have more than it may. */
export async function changeSecrets(
  { vault, trx }: { readonly vault: Vault; readonly trx: Transaction },
  workspaceId: string,
  changes: SecretChanges,
): Promise<readonly ChangedSecret[]> {
  // Until the commit: two writers are counted one after the other, and the later one replaces what the earlier one stored.
  await trx
    .selectFrom('workspaces')
    .select('id')
    .where('id', '=', workspaceId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(noWorkspace);
  const removed = await deleteSecrets(trx, workspaceId, changes);
  const stored = await storeSecrets({ vault, trx }, workspaceId, changes);
  if (stored.length > 0) await requireCapacity(trx, workspaceId);
  return [...removed, ...stored];
}

async function deleteSecrets(
  trx: Transaction,
  workspaceId: string,
  changes: SecretChanges,
): Promise<readonly ChangedSecret[]> {
  const names = changes.flatMap((change) => (change.value === null ? [change.key] : []));
  if (names.length === 0) return [];
  return trx
    .deleteFrom('workspace_secrets')
    .where('workspace_id', '=', workspaceId)
    .where('key', 'in', names)
    .returning(['id', 'key'])
    .execute();
}

async function storeSecrets(
  { vault, trx }: { readonly vault: Vault; readonly trx: Transaction },
  workspaceId: string,
  changes: SecretChanges,
): Promise<readonly ChangedSecret[]> {
  const given = changes.flatMap((one) => (one.value === null ? [] : [{ key: one.key, value: one.value }]));
  if (given.length === 0) return [];
  const versions = await nextVersions(trx, given.length);
  const rows: NewRow[] = [];
  for (const [at, { key: name, value: secret }] of given.entries()) {
    const version = Number(versions[at]);
    const sealed = await vault.seal(trx, placeOf({ workspaceId, key: name, version }), secret);
    rows.push({ workspace_id: workspaceId, key: name, version: String(version), sealed });
  }
  return trx
    .insertInto('workspace_secrets')
    .values(rows)
    .onConflict((conflict) =>
      conflict.constraint('workspace_secrets_key').doUpdateSet(({ ref }) => ({
        version: ref('excluded.version'),
        sealed: ref('excluded.sealed'),
        updated_at: sql<Date>`now()`,
      })),
    )
    .returning(['id', 'key'])
    .execute();
}

type NewRow = {
  readonly workspace_id: string;
  readonly key: string;
  readonly version: string;
  readonly sealed: Buffer;
};

async function nextVersions(trx: Transaction, count: number): Promise<readonly string[]> {
  const { rows } = await sql<{ readonly version: string }>`
    select nextval('workspace_secret_versions') as version from generate_series(1, ${count}::int)`.execute(
    trx,
  );
  return rows.map(({ version }) => version);
}

async function requireCapacity(trx: Transaction, workspaceId: string): Promise<void> {
  const { count, bytes } = await trx
    .selectFrom('workspace_secrets')
    .where('workspace_id', '=', workspaceId)
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .select(sql<string>`coalesce(sum(octet_length(sealed)), 0)`.as('bytes'))
    .executeTakeFirstOrThrow();
  if (Number(count) > MAX_SECRETS)
    throw excess(`A workspace can have at most ${MAX_SECRETS} secrets: delete some first`);
  if (Number(bytes) > MAX_TOTAL_BYTES)
    throw excess(
      `The secrets of a workspace can have at most ${MAX_TOTAL_BYTES} bytes together, as they are stored: delete some first`,
    );
}

function excess(msg: string): InvalidInput {
  const issue: Issue = { loc: ['body'], msg, type: 'too_long' };
  return new InvalidInput([issue]);
}
