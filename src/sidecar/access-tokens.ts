// The token that clients of the proxy send, and the token of the admin API: the operator's, or one that the first start
// generates in a file that other users cannot read. Messages name the source, never the token.
import { randomBytes } from 'node:crypto';
import { Secret } from '../base/secret.ts';
import { createFiles, isPresent, readKeyFile } from '../tls/pem-files.ts';
import type { Config } from './config.ts';
import { modeWarnings, readSecretFile } from './secret-files.ts';

export const MIN_TOKEN_CHARS = 16;

/** The token that clients of the proxy send; undefined: they need none. As text, because clients are configured with it. */
export function readProxyToken({ auth }: Pick<Config, 'auth'>): string | undefined {
  if (auth === undefined || auth === 'none') return undefined;
  return readTokenFile(auth.tokenFile);
}

/** The token that one client sends, from a file. */
export function readTokenFile(file: string, what: string = 'proxy token'): string {
  const { value } = readSecretFile(what, file);
  if (value.length < MIN_TOKEN_CHARS)
    throw new Error(`${file}: the ${what} must have at least ${MIN_TOKEN_CHARS} characters`);
  return value;
}

export function proxyTokenWarnings({ auth }: Pick<Config, 'auth'>): readonly string[] {
  return auth === undefined || auth === 'none' ? [] : modeWarnings(auth.tokenFile);
}

/** A file that is read or created, or the token itself; `from` names the token in messages. */
export type AdminTokenSource = { readonly file: string } | { readonly text: string; readonly from: string };

const ADVICE = {
  unreadable: 'Set a file that this user can read, or unset it to have a token generated',
  exposed: 'replace the token if they may have read it',
};

/** Throws an Error that says what to do. */
export async function loadAdminToken(source: AdminTokenSource): Promise<Secret> {
  if ('text' in source) return checked(source.text, source.from);
  const { file } = source;
  if (!(await isPresent(file))) {
    const text = randomBytes(32).toString('base64url');
    if (await createFiles([{ file, text: `${text}\n`, mode: 0o600 }])) return new Secret(text);
  }
  return checked(await readKeyFile(file, ADVICE), file);
}

/** A line end after the token is allowed: editors and `echo` write it. */
function checked(given: string, from: string): Secret {
  const text = given.replace(/\r?\n$/, '');
  if (!/^[\x21-\x7e]*$/.test(text))
    throw new Error(`${from}: the admin token must be one line of visible ASCII without spaces`);
  if (text.length < MIN_TOKEN_CHARS)
    throw new Error(`${from}: the admin token must have at least ${MIN_TOKEN_CHARS} characters`);
  return new Secret(text);
}
