// The whole document of a sandbox or a profile, with its opaque values: sealed for the database, and as a sidecar gets it. One of the
// files that may reveal secrets and that open values of the vault.
import { DomainError } from '../../base/domain-error.ts';
import { Secret } from '../../base/secret.ts';
import { toProxyConfigDocument } from '../../policy/document/proxy-config-document.ts';
import { parseProxyConfig } from '../../policy/document/proxy-config.ts';
import type { Reader, Transaction } from '../store/database.ts';
import type { SealedPlace, Vault } from '../vault/vault.ts';
import type { ProxyDocument } from './parsed-document.ts';

/** In the transaction that stores the bytes, after `vault.prepare()`. */
export function sealDocument(
  { vault, trx }: { readonly vault: Vault; readonly trx: Transaction },
  place: SealedPlace,
  document: ProxyDocument,
): Promise<Buffer> {
  return vault.seal(trx, place, new Secret(JSON.stringify(toWholeDocument(document))));
}

/** `problem`: this version rejects the document, which an earlier one has stored. It can be replaced, with all its values. */
export type OpenedDocument =
  | { readonly ok: true; readonly document: ProxyDocument }
  | { readonly ok: false; readonly problem: string };

export async function openDocument(
  { vault, db }: { readonly vault: Vault; readonly db: Reader },
  place: SealedPlace,
  sealed: Buffer,
): Promise<OpenedDocument> {
  const text = await vault.unsealValue(db, place, sealed);
  if (text === undefined)
    throw new Error(
      `the ${place.purpose} ${place.name} was changed or moved in the database: it does not open`,
    );
  const parsed = parseProxyConfig(JSON.parse(text.reveal()));
  if (parsed.ok) return { ok: true, document: parsed.value };
  const [issue] = parsed.issues;
  const problem = `The stored proxy_config is not valid any more, so it must be replaced: ${issue?.loc.join('.')}: ${issue?.msg}`;
  return { ok: false, problem };
}

/** Throws a DomainError `conflict` that says why it cannot be used. */
export function requireDocument(opened: OpenedDocument): ProxyDocument {
  if (opened.ok) return opened.document;
  throw new DomainError('conflict', opened.problem);
}

/** With its opaque values: only for the sidecar. It must not be logged, and is never part of an error. */
export function toWholeDocument(document: ProxyDocument): object {
  return toProxyConfigDocument(document, (value) => ({ value: value.reveal() })) as object;
}
