// Tokens of sandboxes: given by whoever makes the sandbox, or made here and told once.
import { randomBytes } from 'node:crypto';
import type { Issue } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import type { Admission } from '../../proxy/accept/admission.ts';
import type { ProxyContext } from '../../proxy/context.ts';
import type { WantedToken } from './sandbox-document.ts';

/** `told`: a token that was made here, in clear, for the one answer that tells it. */
export type GivenToken = { readonly secret: Secret; readonly reported: string | undefined };

/** Undefined: none is wanted. `taken`: by `admission` it lets clients of a sandbox in already that is not `own`. */
export function givenToken(
  wanted: WantedToken,
  admission?: Admission,
  own?: ProxyContext,
): GivenToken | undefined | 'taken' {
  if (wanted === undefined) return undefined;
  if (wanted === 'made') {
    const reported = randomBytes(32).toString('base64url');
    return { secret: new Secret(reported), reported };
  }
  const holder = admission?.admit(wanted);
  return holder === undefined || holder === own ? { secret: wanted, reported: undefined } : 'taken';
}

export const TOKEN_TAKEN: Issue = {
  loc: ['token'],
  msg: 'This token is in use: give another one, or "generate"',
  type: 'value_error',
};
