// Secrets in environment variables, for trying things out. /proc/PID/environ shows the initial environment of a process
// until it ends, whatever the process deletes, so the process replaces itself (same PID) by one that starts without them.
// The values are handed over in an encrypted file: of the descriptors only the three standard ones survive in Node, and
// those are in use. The file is unlinked before it is read. Its key is handed over in the environment and is never on
// disk: after a crash the file cannot be decrypted, and later the key decrypts nothing.
import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { closeSync, constants, existsSync, openSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FoundSecret } from './sandboxes/secret-document.ts';
import { readSecretDescriptor } from './secret-files.ts';

const PREFIX = 'SALLYPORT_SECRET_';
const FILE_SUFFIX = '_FILE';
const HANDOVER = 'SALLYPORT_HANDED_SECRETS';

/** Variables that hold a secret of the operator; for each there is a setting that names a file instead. */
export const operatorVariables = ['SALLYPORT_ADMIN_TOKEN', 'SALLYPORT_STATE_KEY'] as const;
/** Such variables of the platform. A URL may contain a password. */
export const platformSecretVariables = [
  'DATABASE_URL',
  'SALLYPORT_PLATFORM_DATABASE_OWNER_URL',
  'SALLYPORT_BOOTSTRAP_API_KEY',
] as const;
export type OperatorVariable = (typeof operatorVariables | typeof platformSecretVariables)[number];

/** `descriptor`: the secrets of --secrets-fd, if they were read before. */
export type HandedSecrets = {
  readonly variables: readonly FoundSecret[];
  readonly operators: Readonly<Partial<Record<OperatorVariable, string>>>;
  readonly descriptor?: readonly FoundSecret[];
};

/** The variables that hold a secret itself. */
export function secretVariables(env: NodeJS.ProcessEnv): FoundSecret[] {
  return variables(env).filter(({ name }) => !name.endsWith(FILE_SUFFIX));
}

/** The variables that hold the path of a secret; `name` is the name of the secret, `value` the path. */
export function secretFileVariables(env: NodeJS.ProcessEnv): FoundSecret[] {
  return variables(env)
    .filter(({ name }) => name.endsWith(FILE_SUFFIX))
    .map(({ name, value, from }) => ({ name: name.slice(0, -FILE_SUFFIX.length), value, from }));
}

/** A copy of the environment without secrets. Paths of secrets stay. */
export function withoutSecretVariables(
  env: NodeJS.ProcessEnv,
  operators: readonly string[] = operatorVariables,
): NodeJS.ProcessEnv {
  const exposed = new Set([...secretVariables(env).map(({ from }) => from), ...operators, HANDOVER]);
  return Object.fromEntries(Object.entries(env).filter(([variable]) => !exposed.has(variable)));
}

/**
 * If the process was started with secrets in its environment, replaces it and does not return. Must be called first: what
 * the process has opened or read is lost. So would be the descriptor of --secrets-fd: it is read here and its secrets are
 * handed over as well. `names`: the program's own variables that hold a secret. Throws if the process cannot be replaced.
 */
export function handOverSecretVariables(fd?: number, names: readonly string[] = operatorVariables): void {
  const variables = secretVariables(process.env);
  const operators = operatorsOf(process.env, names);
  if (variables.length === 0 && Object.keys(operators).length === 0) return;
  if (process.execve === undefined)
    throw new Error(
      'a secret in a variable needs process.execve, which this Node does not have: use a file or --secrets-fd',
    );
  const { key, path } = seal({
    variables,
    operators,
    ...(fd !== undefined && { descriptor: readSecretDescriptor(fd).found }),
  });
  try {
    const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
    process.execve(process.execPath, args, {
      ...withoutSecretVariables(process.env, names),
      [HANDOVER]: `${key}:${path}`,
    });
  } catch (error) {
    unlinkSync(path);
    throw new Error('the process could not be restarted without the secrets in its environment', {
      cause: error,
    });
  }
}

/** The secrets of the platform in the environment. A URL without a password is not a secret, and hiding it would cost a restart of the process. */
export function exposedVariables(env: NodeJS.ProcessEnv): readonly string[] {
  return platformSecretVariables.filter((name) => {
    const value = env[name] ?? '';
    if (value === '' || !name.endsWith('_URL') || !URL.canParse(value)) return value !== '';
    const url = new URL(value);
    return url.password !== '' || url.searchParams.has('password');
  });
}

/** In the new process: takes the secrets that were handed over, once, and removes the key from `env`. */
export function claimSecrets(env: NodeJS.ProcessEnv): HandedSecrets {
  const handover = env[HANDOVER];
  if (handover === undefined) return { variables: [], operators: {} };
  delete env[HANDOVER];
  const colon = handover.indexOf(':');
  return unseal({ key: handover.slice(0, colon), path: handover.slice(colon + 1) });
}

function operatorsOf(env: NodeJS.ProcessEnv, names: readonly string[]): HandedSecrets['operators'] {
  const given = names.map((name) => [name, env[name]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== ''));
}

function variables(env: NodeJS.ProcessEnv): FoundSecret[] {
  return Object.entries(env).flatMap(([variable, value]) =>
    variable.startsWith(PREFIX) && value !== undefined
      ? [{ name: variable.slice(PREFIX.length), value, from: variable }]
      : [],
  );
}

type SealedFile = { readonly key: string; readonly path: string };

// Each key encrypts one message, so the nonce can be constant.
const CIPHER = 'chacha20-poly1305';
const NONCE: Buffer = Buffer.alloc(12);
const TAG_BYTES = 16;

function seal(secrets: HandedSecrets): SealedFile {
  const key = randomBytes(32);
  const cipher = createCipheriv(CIPHER, key, NONCE, { authTagLength: TAG_BYTES });
  const sealed = [cipher.update(JSON.stringify(secrets)), cipher.final(), cipher.getAuthTag()];
  const path = join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), `sallyport-${randomUUID()}`);
  writeFileSync(path, Buffer.concat(sealed), { mode: 0o600, flag: 'wx' });
  return { key: key.toString('base64url'), path };
}

function unseal({ key, path }: SealedFile): HandedSecrets {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    unlinkSync(path);
    const sealed = readFileSync(fd);
    const decipher = createDecipheriv(CIPHER, Buffer.from(key, 'base64url'), NONCE, {
      authTagLength: TAG_BYTES,
    });
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    const opened = Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
    // The tag proves that handOverSecretVariables wrote it.
    return JSON.parse(opened.toString()) as HandedSecrets;
  } finally {
    closeSync(fd);
  }
}
