// The credentials of destinations, which are sealed and have versions: an export that has begun with a version keeps it. One of the
// files that open values of the vault.
import { z } from '../../../base/schema.ts';
import { Secret } from '../../../base/secret.ts';
import type { Reader, Transaction } from '../../store/database.ts';
import type { Fixed, Generated } from '../../store/sql.ts';
import type { S3Credentials } from '../../store/files/s3-client.ts';
import type { SealedPlace, Vault } from '../../vault/vault.ts';
import type { Credentials } from './destination-schema.ts';

declare module '../../store/tables.ts' {
  interface Tables {
    readonly export_credentials: {
      readonly destination_id: Fixed<string>;
      readonly workspace_id: Fixed<string>;
      readonly version: Fixed<number>;
      readonly sealed: Fixed<Buffer>;
      readonly created_at: Generated<Date>;
    };
  }
}

export type CredentialPlace = {
  readonly workspaceId: string;
  readonly destinationId: string;
  readonly version: number;
};

const stored = z.strictObject({
  access_key_id: z.string(),
  secret_access_key: z.string(),
  session_token: z.string().optional(),
});

export function toS3Credentials(given: Credentials): S3Credentials {
  return {
    accessKeyId: given.access_key_id,
    secretAccessKey: given.secret_access_key,
    sessionToken: given.session_token ?? undefined,
  };
}

export function credentialKeys(given: Credentials | null | undefined): readonly string[] {
  if (!given) return [];
  const keys = ['access_key_id', 'secret_access_key'];
  return given.session_token ? [...keys, 'session_token'] : keys;
}

export async function storeCredentials(
  { vault, trx }: { readonly vault: Vault; readonly trx: Transaction },
  place: CredentialPlace,
  given: Credentials,
): Promise<void> {
  const { access_key_id, secret_access_key: secret, session_token: token } = given;
  const text = new Secret(
    JSON.stringify({
      ...{ access_key_id, secret_access_key: secret.reveal() },
      ...(token ? { session_token: token.reveal() } : {}),
    }),
  );
  const { workspaceId, destinationId, version } = place;
  const sealed = await vault.seal(trx, sealedPlaceOf(place), text);
  await trx
    .insertInto('export_credentials')
    .values({ destination_id: destinationId, workspace_id: workspaceId, version, sealed })
    .execute();
}

/** Undefined: the version is gone. */
export async function openCredentials(
  { vault, db }: { readonly vault: Vault; readonly db: Reader },
  place: CredentialPlace,
): Promise<S3Credentials | undefined> {
  const row = await db
    .selectFrom('export_credentials')
    .select('sealed')
    .where('workspace_id', '=', place.workspaceId)
    .where('destination_id', '=', place.destinationId)
    .where('version', '=', place.version)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const value = await vault.unsealValue(db, sealedPlaceOf(place), row.sealed);
  if (value === undefined)
    throw new Error(
      `the credentials of destination ${place.destinationId} were changed or moved: they do not open`,
    );
  const opened = stored.parse(JSON.parse(value.reveal()));
  return {
    accessKeyId: opened.access_key_id,
    secretAccessKey: new Secret(opened.secret_access_key),
    sessionToken: opened.session_token === undefined ? undefined : new Secret(opened.session_token),
  };
}

function sealedPlaceOf({ workspaceId, destinationId, version }: CredentialPlace): SealedPlace {
  return { workspaceId, purpose: 'export_credentials', name: destinationId, version };
}
