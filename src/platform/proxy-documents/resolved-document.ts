// What a sidecar gets of a document: the document with its opaque values, and the workspace secrets that it names. It is compiled
// here first, with these secrets, so that a sidecar does not reject it.
import { InvalidInput } from '../../base/domain-error.ts';
import { type Issue, toLocKey } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { finishInSlices } from '../../base/steps.ts';
import { compileInSteps } from '../../policy/compile.ts';
import { parseSecretTemplate } from '../../policy/document/header-rules.ts';
import { MAX_REFUSE_CHARS } from '../../policy/document/proxy-config-schema.ts';
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
  const issues = await issuesOf(merged.document, secrets);
  if (issues.length > 0) throw new InvalidInput(placeIssues(issues, merged));
}

async function issuesOf(
  document: ProxyDocument,
  secrets: ReadonlyMap<string, Secret>,
): Promise<readonly Issue[]> {
  const missing = findMissing(document, secrets);
  if (missing.length > 0) return missing;
  const compiled = await finishInSlices(compileInSteps(document, (name) => secrets.get(name), 1));
  return compiled.ok ? [] : compiled.issues;
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

/** A rule in place of which its requests are refused, and why, in words for its author. */
export type RefusedRule = { readonly name: string; readonly reason: string };

/**
 * For what was stored and must work on: a rule whose secrets were deleted since, or give no valid header, refuses its requests, and the
 * other rules are in effect. Throws InvalidInput for what is wrong with the document as a whole.
 */
export async function resolveUsable(
  merged: MergedDocument,
  secrets: ReadonlyMap<string, Secret>,
): Promise<ResolvedDocument & { readonly refused: readonly RefusedRule[] }> {
  const refused: RefusedRule[] = [];
  let { document } = merged;
  for (;;) {
    const issues = await issuesOf(document, secrets);
    const reasons = new Map(
      issues.flatMap(({ loc: [list, rule], msg }) =>
        list === 'rules' && typeof rule === 'number' ? [[rule, msg]] : [],
      ),
    );
    if (issues.length === 0) break;
    // What is wrong with a rule that injects no secret any more would be wrong again.
    if (![...reasons.keys()].some((i) => document.rules[i]?.refuse === undefined))
      throw new InvalidInput(placeIssues(issues, merged));
    const rules = document.rules.map((rule, i) => {
      const reason = reasons.get(i);
      if (reason === undefined || rule.refuse !== undefined) return rule;
      refused.push({ name: rule.name ?? `rules[${i}]`, reason });
      return { ...rule, refuse: reason.slice(0, MAX_REFUSE_CHARS) };
    });
    document = { ...document, rules };
  }
  return { ...(await resolveDocument({ ...merged, document }, secrets)), refused };
}

/** One issue for each header. */
function findMissing({ rules }: ProxyDocument, secrets: ReadonlyMap<string, Secret>): readonly Issue[] {
  return rules.flatMap(({ enabled, refuse, headers }, i) =>
    headers.flatMap(({ type, value }, j): Issue[] => {
      if (!enabled || refuse !== undefined || type !== 'workspace_secret') return [];
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
