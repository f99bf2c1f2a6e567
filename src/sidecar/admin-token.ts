// The token of the admin API: the operator's, or one made at the first start and kept in a file that only we may read.
// Messages name the source and never what it holds.
import { randomBytes } from 'node:crypto';
import { Secret } from '../base/secret.ts';
import { type KeyAdvice, createFiles, isPresent, readKeyFile } from '../tls/pem-files.ts';
import { MIN_TOKEN_CHARS } from './secret-files.ts';

/** `file`: what is read or made there; `text`: the value itself, and `from` stands for it in messages. */
export type AdminTokenSource = { readonly file: string } | { readonly text: string; readonly from: string };

const ADVICE: KeyAdvice = {
  unreadable: 'Name a file that this user can read, or remove the setting to have a token made',
  exposed: 'replace the token if they may have read it',
};

/** Throws an Error that says what to mend. */
export async function loadAdminToken(source: AdminTokenSource): Promise<Secret> {
  if ('text' in source) return checked(source.text, source.from);
  const { file } = source;
  if (!(await isPresent(file))) {
    const text = randomBytes(32).toString('base64url');
    if (await createFiles([{ file, text: `${text}\n`, mode: 0o600 }])) return new Secret(text);
  }
  return checked(await readKeyFile(file, ADVICE), file);
}

/** A line end behind it is forgiven: editors and `echo` write it. */
function checked(given: string, from: string): Secret {
  const text = given.replace(/\r?\n$/, '');
  if (!/^[\x21-\x7e]*$/.test(text))
    throw new Error(`${from}: the admin token should be one line of visible ASCII without spaces`);
  if (text.length < MIN_TOKEN_CHARS)
    throw new Error(`${from}: the admin token should have at least ${MIN_TOKEN_CHARS} characters`);
  return new Secret(text);
}
