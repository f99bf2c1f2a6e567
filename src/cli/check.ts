// `sallyport check FILE...`: lists all issues of all files. The keys of a file show whether it is a config file or a
// proxy_config.
import { InputError, readInput } from '../base/input-error.ts';
import type { Issue } from '../base/schema.ts';
import { compileProxyConfig, type SecretLookup } from '../policy/compile.ts';
import { parseProxyConfig, parseValidEntries } from '../policy/document/proxy-config.ts';
import { parseConfig } from '../sidecar/config.ts';
import { loadWorkspaceSecrets } from '../sidecar/sandboxes/workspace-secrets.ts';
import { missing, parseCommandLine } from './command/declaration.ts';
import { checkCommand } from './command/inspection-commands.ts';
import { readDocument, readStandardInput, standardInput } from './document.ts';
import { type Finding, formatIssues } from './issue-lines.ts';
import { findLikelyMistakes } from './rules/likely-mistakes.ts';
import { placeUnknownKeys } from './rules/misplaced-keys.ts';
import { type Recognized, recognize } from './rules/proxy-config-file.ts';

type Checked = {
  readonly file: string;
  /** Undefined: the file is no JSON document. */
  readonly kind: Recognized['kind'] | undefined;
  /** A proxy_config as the admin API returns it, which may omit values that the proxy stores. */
  readonly isWrapped: boolean;
  readonly error?: string;
  readonly issues: readonly Finding[];
  readonly warnings: readonly Finding[];
};

/** Exit code 0 if all files are valid, 2 otherwise. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, operands: files } = parseCommandLine(checkCommand, args);
  if (files.length === 0) throw missing(checkCommand, 'FILE');
  const lookup = await secretsIn(values['secrets-dir']);
  const results: Checked[] = [];
  for (const file of files) results.push(await check(file, lookup));
  if (values.json) process.stdout.write(`${JSON.stringify({ files: results.map(toJson) }, null, 2)}\n`);
  else for (const result of results) print(result);
  return results.every(isValid) ? 0 : 2;
}

/** Undefined: whether the secrets exist is not checked. */
async function secretsIn(directory: string | undefined): Promise<SecretLookup | undefined> {
  if (directory === undefined) return undefined;
  const { lookup, warnings } = await readInput(() => loadWorkspaceSecrets({ directory }, {}));
  for (const warning of warnings) process.stderr.write(`sallyport: ${warning}\n`);
  return lookup;
}

async function check(file: string, lookup: SecretLookup | undefined): Promise<Checked> {
  const name = file === '-' ? standardInput : file;
  try {
    const recognized = recognize(file === '-' ? await readStandardInput() : await readDocument(file));
    const { kind, document, loc } = recognized;
    const { issues, warnings } = kind === 'config' ? checkConfig(document) : checkRules(document, lookup);
    const isWrapped = loc.length > 0;
    return {
      file: name,
      kind,
      isWrapped,
      issues: at(placeUnknownKeys(kind, issues), loc),
      warnings: at(warnings, loc),
    };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { file: name, kind: undefined, isWrapped: false, error: error.message, issues: [], warnings: [] };
  }
}

type Findings = Pick<Checked, 'issues' | 'warnings'>;

function checkConfig(document: unknown): Findings {
  const parsed = parseConfig(document, {});
  return { issues: parsed.ok ? [] : parsed.issues, warnings: [] };
}

function checkRules(document: unknown, lookup: SecretLookup | undefined): Findings {
  const parsed = parseProxyConfig(document);
  const known = parsed.ok ? parsed.value : parseValidEntries(document);
  const compiled = lookup === undefined ? undefined : compileProxyConfig(known, lookup, 1);
  const found = compiled?.ok === false ? compiled.issues : [];
  if (!parsed.ok) return { issues: [...parsed.issues, ...found], warnings: [] };
  return { issues: found, warnings: [...parsed.warnings, ...findLikelyMistakes(parsed.value)] };
}

function at(findings: readonly Finding[], loc: Issue['loc']): readonly Finding[] {
  return findings.map((finding) => ({ ...finding, loc: [...loc, ...finding.loc] }));
}

function isValid({ error, issues }: Checked): boolean {
  return error === undefined && issues.length === 0;
}

function print(result: Checked): void {
  const { file, kind, isWrapped, error, issues, warnings } = result;
  if (error !== undefined) return void process.stderr.write(`${error}\n`);
  process.stdout.write(formatIssues(file, issues));
  process.stdout.write(formatIssues(`${file}: warning`, warnings));
  const what = `valid ${kind}${isWrapped ? ', as the admin API returns it' : ''}`;
  const count = `${issues.length} ${issues.length === 1 ? 'error' : 'errors'}`;
  process.stdout.write(isValid(result) ? `${file}: ${what}\n` : `${file}: not a ${what}: ${count}\n`);
}

function toJson(result: Checked) {
  const { file, kind = null, error, issues, warnings } = result;
  return { file, kind, valid: isValid(result), ...(error === undefined ? {} : { error }), issues, warnings };
}
