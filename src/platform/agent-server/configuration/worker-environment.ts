// The variables of the workers: those that `env` of the configuration file gives, and none of the server besides.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Issue, Parsed } from '../../../base/schema.ts';
import { parseEnvFile } from './env-file.ts';
import type { EnvironmentDocument } from './graph-file.ts';

/** `server`: the variables of this process, which a list of names chooses from. */
export async function readWorkerEnvironment(
  document: EnvironmentDocument,
  root: string,
  server: NodeJS.ProcessEnv,
): Promise<Parsed<Readonly<Record<string, string>>>> {
  if (typeof document === 'string') return readFileOf(resolve(root, document));
  if (!Array.isArray(document))
    return accept(document as Readonly<Record<string, string>>, (name) => ['env', name]);
  const names: readonly string[] = document;
  const missing = names.flatMap((name, at) =>
    server[name] === undefined || OWN.test(name) ? [issue(['env', at], notSet(name))] : [],
  );
  if (missing.length > 0) return { ok: false, issues: missing };
  return { ok: true, value: Object.fromEntries(names.map((name) => [name, server[name] ?? ''])) };
}

/** Settings and credentials of the server itself. */
const OWN = /^(?:SALLYPORT_|DATABASE_URL$)/;

function notSet(name: string): string {
  return OWN.test(name)
    ? `${name} belongs to the server, and no worker gets it: remove it from the list`
    : `${name} is not set in the environment of the server: set it, or remove it from the list`;
}

async function readFileOf(file: string): Promise<Parsed<Readonly<Record<string, string>>>> {
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

function accept(
  values: Readonly<Record<string, string>>,
  locOf: (name: string) => Issue['loc'],
): Parsed<Readonly<Record<string, string>>> {
  const issues = Object.entries(values).flatMap(([name, value]) =>
    value.includes('\0') ? [issue(locOf(name), `${name} must not contain U+0000`)] : [],
  );
  return issues.length > 0 ? { ok: false, issues } : { ok: true, value: values };
}

function issue(loc: Issue['loc'], msg: string): Issue {
  return { loc, msg, type: 'value_error' };
}
