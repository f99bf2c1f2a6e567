// Secrets in environment variables, for a try-out. /proc/PID/environ shows what a process was started with for as long
// as it lives, whatever it deletes, so the process replaces itself (the same PID) by one that was started without them.
// The values cross over in a sealed file: Node lets no descriptor but the three standard ones survive, and those are
// in use. The file is unlinked before it is read; the key crosses in the environment and never touches a disk, so that
// a crash in between leaves noise and afterwards the key opens nothing.
import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { closeSync, constants, existsSync, openSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FoundSecret } from './sandboxes/secret-document.ts';
import { readSecretDescriptor } from './secret-files.ts';

const PREFIX = 'SALLYPORT_SECRET_';
const FILE_SUFFIX = '_FILE';
const HANDOVER = 'SALLYPORT_HANDED_SECRETS';

/** Variables that hold a secret of the operator's own; each has a twin that names a file. */
export const operatorVariables = ['SALLYPORT_ADMIN_TOKEN', 'SALLYPORT_STATE_KEY'] as const;
/** Those of the platform. A URL holds a password. */
export const platformSecretVariables = [
  'DATABASE_URL',
  'SALLYPORT_PLATFORM_DATABASE_OWNER_URL',
  'SALLYPORT_BOOTSTRAP_API_KEY',
] as const;
export type OperatorVariable = (typeof operatorVariables | typeof platformSecretVariables)[number];

/** `descriptor`: what --secrets-fd gave, if it was read before. */
export type HandedSecrets = {
  readonly variables: readonly FoundSecret[];
  readonly operators: Readonly<Partial<Record<OperatorVariable, string>>>;
  readonly descriptor?: readonly FoundSecret[];
};

/** The variables that hold a secret itself. */
export function secretVariables(env: NodeJS.ProcessEnv): FoundSecret[] {
  return variables(env).filter(({ name }) => !name.endsWith(FILE_SUFFIX));
}

/** The variables that hold the path of a secret; `name` is the secret's, `value` the path. */
export function secretFileVariables(env: NodeJS.ProcessEnv): FoundSecret[] {
  return variables(env)
    .filter(({ name }) => name.endsWith(FILE_SUFFIX))
    .map(({ name, value, from }) => ({ name: name.slice(0, -FILE_SUFFIX.length), value, from }));
}

/** A copy of the environment that holds no secret. Paths of secrets stay. */
export function withoutSecretVariables(
  env: NodeJS.ProcessEnv,
  operators: readonly string[] = operatorVariables,
): NodeJS.ProcessEnv {
  const exposed = new Set([...secretVariables(env).map(({ from }) => from), ...operators, HANDOVER]);
  return Object.fromEntries(Object.entries(env).filter(([variable]) => !exposed.has(variable)));
}

/**
 * If the process was started with secrets in its environment, replaces it by one that was not and does not return.
 * To be called first of all: what the process has opened or read is lost. The descriptor of --secrets-fd would be too,
 * so it is read here and what it gives crosses over as well. `names` are the operator's own variables, of another program
 * other ones. Throws if it cannot be done.
 */
export function handOverSecretVariables(fd?: number, names: readonly string[] = operatorVariables): void {
  const variables = secretVariables(process.env);
  const operators = operatorsOf(process.env, names);
  if (variables.length === 0 && Object.keys(operators).length === 0) return;
  if (process.execve === undefined)
    throw new Error(
      'a secret in a variable needs a process that can replace itself; give a file or --secrets-fd here',
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

/** In the process that came after: takes what was handed over, once. Removes its trace from `env`. */
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

// A key seals one message, so one nonce does for all.
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
    // We wrote it: the tag proves it.
    return JSON.parse(opened.toString()) as HandedSecrets;
  } finally {
    closeSync(fd);
  }
}
