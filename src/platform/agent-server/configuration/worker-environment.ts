// The variables of the workers: those that `env` of the configuration file gives, those that a deployment has besides, and none of
// the server.
import { access, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Issue, Parsed } from '../../../base/schema.ts';
import { parseEnvFile } from '../../../base/variables/env-file.ts';
import type { EnvironmentDocument } from './graph-file.ts';

type Variables = Readonly<Record<string, string>>;

/** `server`: the variables of this process, which a list of names chooses from. */
export async function readWorkerEnvironment(
  document: EnvironmentDocument,
  root: string,
  server: NodeJS.ProcessEnv,
): Promise<Parsed<Variables>> {
  if (typeof document === 'string') return readFileOf(resolve(root, document));
  if (!Array.isArray(document)) return accept(document as Variables, (name) => ['env', name]);
  return chooseFrom(server, document, notSet);
}

/**
 * The same of a deployment: `given` are its own variables, which a list of names chooses from and which win. Commands that deploy leave
 * a file of variables out of the source, because they send its content as these: it need not be there.
 */
export async function readDeploymentEnvironment(
  document: EnvironmentDocument,
  root: string,
  given: Variables,
): Promise<Parsed<Variables>> {
  if (Array.isArray(document)) {
    const chosen = chooseFrom(given, document, notGiven);
    return chosen.ok ? { ok: true, value: given } : chosen;
  }
  const isAbsent = typeof document === 'string' && !(await isThere(resolve(root, document)));
  const own = isAbsent ? { ok: true as const, value: {} } : await readWorkerEnvironment(document, root, {});
  return own.ok ? { ok: true, value: { ...own.value, ...given } } : own;
}

function chooseFrom(
  all: NodeJS.ProcessEnv,
  names: readonly string[],
  describe: (name: string) => string,
): Parsed<Variables> {
  const missing = names.flatMap((name, at) =>
    all[name] === undefined || OWN.test(name) ? [issue(['env', at], describe(name))] : [],
  );
  if (missing.length > 0) return { ok: false, issues: missing };
  return { ok: true, value: Object.fromEntries(names.map((name) => [name, all[name] ?? ''])) };
}

/** Settings and credentials of the server itself. */
const OWN = /^(?:SALLYPORT_|DATABASE_URL$)/;

function notSet(name: string): string {
  return OWN.test(name)
    ? `${name} belongs to the server, and no worker gets it: remove it from the list`
    : `${name} is not set in the environment of the server: set it, or remove it from the list`;
}

function notGiven(name: string): string {
  return OWN.test(name)
    ? `${name} belongs to the server, and no worker gets it: remove it from the list`
    : `${name} is not among the secrets of the deployment: add it there, or remove it from the list`;
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
  );
}

async function readFileOf(file: string): Promise<Parsed<Variables>> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    return { ok: false, issues: [issue(['env'], `${file} cannot be read: ${code}`)] };
  }
  const parsed = parseEnvFile(text);
  if ('values' in parsed) return accept(parsed.values, () => ['env']);
  return { ok: false, issues: [issue(['env'], `${file}:${parsed.line}: ${parsed.msg}`)] };
}

function accept(values: Variables, locOf: (name: string) => Issue['loc']): Parsed<Variables> {
  const issues = Object.entries(values).flatMap(([name, value]) =>
    value.includes('\0') ? [issue(locOf(name), `${name} must not contain U+0000`)] : [],
  );
  return issues.length > 0 ? { ok: false, issues } : { ok: true, value: values };
}

function issue(loc: Issue['loc'], msg: string): Issue {
  return { loc, msg, type: 'value_error' };
}
