// The workspace's secrets by name, collected from all sources. Of two with one name the earlier source wins:
//   1. --secrets-fd N                  a JSON object of strings, or NAME=value lines
//   2. SALLYPORT_SECRET_<NAME>_FILE    the path of a file that holds one secret
//   3. a directory                     one secret a file (Kubernetes and Docker mounts)
//   4. a file                          NAME=value lines
//   5. SALLYPORT_SECRET_<NAME>         the value itself, for trying things out (see secret-environment.ts)
import { Secret } from '../../base/secret.ts';
import type { SecretLookup } from '../../policy/compile.ts';
import { ALPHABET, type FoundSecret, isSecretName } from './secret-document.ts';
import { type HandedSecrets, secretFileVariables, secretVariables } from '../secret-environment.ts';
import {
  maxSecretBytes,
  maxSecrets,
  readSecretDescriptor,
  readSecretDirectory,
  readSecretFile,
  readSecretLines,
  type SecretSource,
} from '../secret-files.ts';

export type SecretSources = {
  /** From the process that this one replaced (see secret-environment.ts). */
  readonly handed?: HandedSecrets | undefined;
  readonly fd?: number | undefined;
  readonly directory?: string | undefined;
  readonly file?: string | undefined;
};

export type WorkspaceSecrets = {
  readonly lookup: SecretLookup;
  readonly names: readonly string[];
  /** For the operator: what was skipped, or is shadowed or readable by others. */
  readonly warnings: readonly string[];
  /** Reads directories and files again, because mounts are rotated. The descriptor and the variables are read once. */
  reload(): WorkspaceSecrets;
};

/** Throws an Error that names the source and the line, never a value. */
export function loadWorkspaceSecrets(sources: SecretSources, env: NodeJS.ProcessEnv): WorkspaceSecrets {
  const [exposed] = secretVariables(env);
  if (exposed !== undefined) throw new Error(`${exposed.from} is still in the environment of this process`);
  const given =
    sources.handed?.descriptor ?? (sources.fd === undefined ? [] : readSecretDescriptor(sources.fd).found);
  const paths = secretFileVariables(env);
  return collect(() => [
    { found: given, warnings: [] },
    { found: paths.map(({ name, value, from }) => readSecretFile(name, value, from)), warnings: [] },
    sources.directory === undefined ? nothing : readSecretDirectory(sources.directory),
    sources.file === undefined ? nothing : readSecretLines(sources.file),
    { found: sources.handed?.variables ?? [], warnings: [] },
  ]);
}

const nothing: SecretSource = { found: [], warnings: [] };

function collect(read: () => readonly SecretSource[]): WorkspaceSecrets {
  const all = read();
  const taken = new Map<string, FoundSecret>();
  const warnings = all.flatMap((source) => source.warnings);
  for (const secret of all.flatMap((source) => source.found)) {
    assertAdmissible(secret);
    const earlier = taken.get(secret.name);
    if (earlier === undefined) taken.set(secret.name, secret);
    else warnings.push(`${secret.name} of ${secret.from} is not used: ${earlier.from} sets it too`);
  }
  if (taken.size > maxSecrets)
    throw new Error(`${taken.size} secrets are set; at most ${maxSecrets} are allowed`);
  const secrets = new Map([...taken.values()].map(({ name, value }) => [name, new Secret(value)]));
  return {
    lookup: (name) => secrets.get(name),
    names: [...secrets.keys()].toSorted(),
    warnings,
    reload: () => collect(read),
  };
}

function assertAdmissible({ name, value, from }: FoundSecret): void {
  if (!isSecretName(name)) throw new Error(`${from}: the name of a secret must have ${ALPHABET}`);
  if (value === '') throw new Error(`${from}: ${name} is empty`);
  if (Buffer.byteLength(value) > maxSecretBytes)
    throw new Error(`${from}: ${name} is larger than ${maxSecretBytes} bytes`);
}
