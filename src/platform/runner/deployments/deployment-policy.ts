// The rules of the proxy behind which a deployment runs: those of its proxy profile with the workspace secrets that they name, as they are
// now. Without a profile there are none, and what it connects to is not changed.
import { DomainError, InvalidInput } from '../../../base/domain-error.ts';
import { mergeDocuments } from '../../proxy-documents/merged-document.ts';
import { secretNamesIn } from '../../proxy-documents/parsed-document.ts';
import { type ResolvedDocument, resolveUsable } from '../../proxy-documents/resolved-document.ts';
import { requireDocument } from '../../proxy-documents/sealed-document.ts';
import { readDefaultProfile, readProfile } from '../../proxy-profiles/contract.ts';
import type { Database, Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { Vault } from '../../vault/vault.ts';
import { openSecrets } from '../../workspace-secrets/contract.ts';

export type PolicyOwner = {
  readonly workspaceId: string;
  /** Undefined: the default profile of the workspace. */
  readonly proxyProfileId?: string | undefined;
};

type Source = { readonly vault: Vault; readonly db: Reader };

export type DeploymentPolicy = ResolvedDocument & {
  /** For the log of the deployment: one for each rule that cannot be applied, in place of which its requests are refused. */
  readonly problems: readonly string[];
};

const NO_RULES: DeploymentPolicy = { document: {}, secrets: new Map(), problems: [] };

/**
 * A secret that was deleted since must not keep a deployment from serving, nor send its requests without a credential: its rule refuses
 * them. Throws a DomainError or an Error whose message is for the owner.
 */
export async function readPolicy(source: Source, owner: PolicyOwner): Promise<DeploymentPolicy> {
  const { workspaceId, proxyProfileId } = owner;
  const profile =
    proxyProfileId === undefined
      ? await readDefaultProfile(source, workspaceId)
      : await readProfile(source, workspaceId, proxyProfileId);
  if (profile === undefined && proxyProfileId === undefined) return NO_RULES;
  if (profile === undefined) throw new DomainError('not_found', 'its proxy profile does not exist any more');
  const merged = mergeDocuments({ own: undefined, profile: requireDocument(profile.opened) });
  const secrets = await openSecrets(source, workspaceId, secretNamesIn(merged.document));
  try {
    const { refused, ...resolved } = await resolveUsable(merged, secrets);
    const problems = refused.map(
      ({ name, reason }) =>
        `the proxy refuses all requests of the rule ${name} of the proxy profile ${profile.name}. ${reason}, or change the rule`,
    );
    return { ...resolved, problems };
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const [issue] = error.issues;
    throw new Error(`the proxy profile ${profile.name} cannot be applied: ${issue?.msg ?? 'it is invalid'}`, {
      cause: error,
    });
  }
}

/**
 * For each of the workspaces a text that is another one after each change of a profile or of a secret. Notifications may be lost: what is
 * compared is the truth.
 */
export async function readPolicyVersions(
  db: Database,
  workspaceIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (workspaceIds.length === 0) return new Map();
  const { rows } = await sql<{ id: string; version: string }>`
    select w.id, md5(concat_ws('/',
      (select string_agg(concat_ws(' ', p.id, p.version, p.is_default), ',' order by p.id)
        from proxy_profiles p where p.workspace_id = w.id),
      '|', (select string_agg(concat_ws(' ', s.key, s.version), ',' order by s.key)
        from workspace_secrets s where s.workspace_id = w.id))) as version
    from unnest(${workspaceIds}::uuid[]) as w (id)`.execute(db);
  return new Map(rows.map(({ id, version }) => [id, version]));
}
