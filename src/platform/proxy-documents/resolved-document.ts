// What a sidecar gets of a document: the document with its opaque values, and the workspace secrets that it names. It is compiled
// here first, with these secrets, so that a sidecar does not reject it.
import { InvalidInput } from '../../base/domain-error.ts';
import { type Issue, toLocKey } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { finishInSlices } from '../../base/steps.ts';
import { compileInSteps } from '../../policy/compile.ts';
import { parseSecretTemplate } from '../../policy/document/header-rules.ts';
import { type MergedDocument, placeIssues } from './merged-document.ts';
import { type ProxyDocument, secretNamesIn } from './parsed-document.ts';
import { toWholeDocument } from './sealed-document.ts';

export type ResolvedDocument = {
  /** A whole proxy_config with its opaque values: it is never logged and never part of an error. */
  readonly document: object;
  /** Exactly those that the document names. */
  readonly secrets: ReadonlyMap<string, Secret>;
};

/**
 * Throws InvalidInput when a secret does not exist, or the document does not compile with the secrets. Takes turns of the event loop: it
 * belongs to `prepare`.
 */
export async function checkDocument(
  merged: MergedDocument,
  secrets: ReadonlyMap<string, Secret>,
): Promise<void> {
  const { document } = merged;
  const missing = findMissing(document, secrets);
  if (missing.length > 0) throw new InvalidInput(placeIssues(missing, merged));
  const compiled = await finishInSlices(compileInSteps(document, (name) => secrets.get(name), 1));
  if (!compiled.ok) throw new InvalidInput(placeIssues(compiled.issues, merged));
}

/** Throws as checkDocument does. `secrets` may have more than the document names. */
export async function resolveDocument(
  merged: MergedDocument,
  secrets: ReadonlyMap<string, Secret>,
): Promise<ResolvedDocument> {
  await checkDocument(merged, secrets);
  const { document } = merged;
  const names = new Set(secretNamesIn(document));
  return {
    document: toWholeDocument(document),
    secrets: new Map([...secrets].filter(([name]) => names.has(name))),
  };
}

/** One issue for each header. */
function findMissing({ rules }: ProxyDocument, secrets: ReadonlyMap<string, Secret>): readonly Issue[] {
  return rules.flatMap(({ enabled, headers }, i) =>
    headers.flatMap(({ type, value }, j): Issue[] => {
      if (!enabled || type !== 'workspace_secret') return [];
      const name = namesIn(value).find((one) => !secrets.has(one));
      if (name === undefined) return [];
      const msg = `The workspace secret ${toLocKey(name)} does not exist: set it by POST to /api/v1/workspaces/current/secrets first`;
      return [{ loc: ['rules', i, 'headers', j, 'value'], msg, type: 'value_error' }];
    }),
  );
}

function namesIn(template: string): readonly string[] {
  const parsed = parseSecretTemplate(template);
  if (typeof parsed === 'string') throw new Error(`not a parsed proxy_config: ${parsed}`);
  return parsed.parts.flatMap((part) => (typeof part === 'string' ? [] : part.secret));
}
