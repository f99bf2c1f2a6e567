// The rules of a box: what a caller wrote, and after it the rules of a proxy profile, become what is shown, and what the sidecar gets
// with the workspace secrets that are named, as they are then. A secret that changes later reaches the box when its rules are
// applied again, not silently.
import { DomainError, InvalidInput } from '../../base/domain-error.ts';
import { mergeDocuments } from '../proxy-documents/merged-document.ts';
import {
  type DocumentRules,
  parseDocument,
  type ProxyDocument,
  secretNamesIn,
} from '../proxy-documents/parsed-document.ts';
import { type ResolvedDocument, resolveDocument } from '../proxy-documents/resolved-document.ts';
import { requireDocument, toWholeDocument } from '../proxy-documents/sealed-document.ts';
import { toShownDocument } from '../proxy-documents/shown-document.ts';
import { type ProxyProfile, readDefaultProfile, readProfile } from '../proxy-profiles/contract.ts';
import type { Reader } from '../store/database.ts';
import type { Vault } from '../vault/vault.ts';
import { openSecrets } from '../workspace-secrets/contract.ts';

export type PreparedPolicy = {
  /** What is shown: an opaque header has no value. Null: the caller wrote none. */
  readonly shown: object | null;
  /** What the caller wrote, with the opaque values that were left out. */
  readonly own: object | undefined;
  readonly profile: Pick<ProxyProfile, 'id' | 'version'> | undefined;
  readonly resolved: ResolvedDocument;
};

export type PolicyParts = { readonly vault: Vault; readonly rules: DocumentRules };
export type PolicyScope = { readonly db: Reader; readonly workspaceId: string };

export type WantedPolicy = {
  /** The proxy_config of a caller; undefined: none. */
  readonly document: unknown;
  /** What it replaces, whose opaque values it may leave out. */
  readonly stored?: object | undefined;
  /** Null: none. Undefined: the default of the workspace. */
  readonly profileId: string | null | undefined;
};

/**
 * Before the transaction: a large document takes turns of the event loop. Undefined where there is neither a document nor a profile.
 * Throws InvalidInput with places below `body`, and `not_found` for a profile.
 */
export async function preparePolicy(
  { vault, rules }: PolicyParts,
  { db, workspaceId }: PolicyScope,
  { document, stored, profileId }: WantedPolicy,
): Promise<PreparedPolicy | undefined> {
  const own = document === undefined ? undefined : parseDocument(document, rules, parseStored(stored));
  const source = { vault, db };
  const profile = await findProfile(source, workspaceId, profileId);
  if (own === undefined && profile === undefined) return undefined;
  const merged = mergeDocuments({ own, profile: profile && requireDocument(profile.opened) });
  const secrets = await openSecrets(source, workspaceId, secretNamesIn(merged.document));
  return {
    shown: own === undefined ? null : toShownDocument(own),
    own: own && toWholeDocument(own),
    profile: profile && { id: profile.id, version: profile.version },
    resolved: await resolveDocument(merged, secrets),
  };
}

async function findProfile(
  source: { readonly vault: Vault; readonly db: Reader },
  workspaceId: string,
  id: string | null | undefined,
): Promise<ProxyProfile | undefined> {
  if (id === null) return undefined;
  if (id === undefined) return readDefaultProfile(source, workspaceId);
  const found = await readProfile(source, workspaceId, id);
  if (found !== undefined) return found;
  throw new DomainError('not_found', 'There is no such proxy profile in this workspace');
}

/** Undefined for a document that this version does not accept any more: nothing of it is kept. */
function parseStored(stored: object | undefined): ProxyDocument | undefined {
  if (stored === undefined) return undefined;
  try {
    return parseDocument(stored, { allowsPrivateCallbacks: true });
  } catch (error) {
    if (error instanceof InvalidInput) return undefined;
    throw error;
  }
}
