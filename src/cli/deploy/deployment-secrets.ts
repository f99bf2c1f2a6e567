// The secrets that a deployment gets: the variables of --secrets-file or, without it, those that `env` of the graph configuration file
// names and this machine has. A map there is a part of the source, and no secret.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { isObject } from '../../base/json/json-document.ts';
import { Secret } from '../../base/secret.ts';
import { parseEnvFile } from '../../base/variables/env-file.ts';
import { isReservedVariable } from '../../base/variables/reserved-variables.ts';
import { codeOf } from '../../tls/pem-files.ts';

export type DeploymentSecrets = {
  /** None: the platform keeps those that it has. */
  readonly secrets: ReadonlyMap<string, Secret>;
  /** What was left out, as sentences. */
  readonly notes: readonly string[];
  /** The file of `env`, whose variables are sent: it is no part of the source. */
  readonly file: string | undefined;
};

type Sources = {
  readonly secretsFile: string | undefined;
  /** `env` of the graph configuration file, and where that file is. */
  readonly declared: unknown;
  readonly directory: string;
  readonly variables: NodeJS.ProcessEnv;
};

/** Throws an InputError that names the file, the line or the variable, and never a value. */
export async function readDeploymentSecrets(sources: Sources): Promise<DeploymentSecrets> {
  const { declared, directory } = sources;
  const file = typeof declared === 'string' ? resolve(directory, declared) : undefined;
  const { values, notes } = await readSources(sources, file);
  const names = Object.keys(values);
  const reserved = names.filter(isReservedVariable);
  // An empty value would keep what the platform has stored.
  const sent = names.filter((name) => !isReservedVariable(name) && values[name] !== '');
  return {
    secrets: new Map(sent.map((name) => [name, new Secret(values[name] ?? '')])),
    notes:
      reserved.length === 0
        ? notes
        : [...notes, `left out, because the platform sets it: ${reserved.join(', ')}`],
    file,
  };
}

type Found = {
  readonly values: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
};

async function readSources(
  { secretsFile, declared, variables }: Sources,
  file: string | undefined,
): Promise<Found> {
  if (secretsFile !== undefined) {
    const values = await readVariables(secretsFile);
    if (values === undefined) throw new InputError(`--secrets-file: ${secretsFile} does not exist`);
    return { values: requireAll(values, declared, secretsFile), notes: [] };
  }
  if (file !== undefined) {
    const values = await readVariables(file);
    const note = `env names ${file}, which does not exist: the platform keeps the secrets that it has`;
    return values === undefined ? { values: {}, notes: [note] } : { values, notes: [] };
  }
  if (Array.isArray(declared)) return { values: requireAll(variables, declared, 'this shell'), notes: [] };
  if (declared !== undefined && !isObject(declared))
    throw new InputError('env must be a map of variables, a list of names, or the path of a file');
  return { values: {}, notes: [] };
}

/** The variables of the list `declared`, or all where there is none. */
function requireAll(
  values: Readonly<Record<string, string | undefined>>,
  declared: unknown,
  where: string,
): Readonly<Record<string, string>> {
  const names = Array.isArray(declared) ? declared.map(String) : Object.keys(values);
  const missing = names.filter((name) => values[name] === undefined && !isReservedVariable(name));
  if (missing.length > 0)
    throw new InputError(
      `env names ${missing.join(', ')}, which ${where} does not have: set it, or remove it from env`,
    );
  return Object.fromEntries(names.map((name) => [name, values[name] ?? '']));
}

/** Undefined: there is no such file. */
async function readVariables(file: string): Promise<Readonly<Record<string, string>> | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined;
    throw new InputError(`${file} cannot be read (${String(codeOf(cause))})`, { cause });
  }
  const parsed = parseEnvFile(text);
  if ('values' in parsed) return parsed.values;
  throw new InputError(`${file}:${parsed.line}: ${parsed.msg}`);
}
