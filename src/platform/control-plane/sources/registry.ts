// The registry that images of `internal_docker` are pushed to: its address, and a token that the operator renews in a file.
import { readFile } from 'node:fs/promises';
import { DomainError } from '../../../base/domain-error.ts';

export type Registry = { readonly url: string; readonly tokenFile: string };
export type PushToken = { readonly token: string; readonly registry_url: string };

/** Throws `unavailable`: the reason is a matter of the operator. */
export async function readPushToken({ url, tokenFile }: Registry): Promise<PushToken> {
  const text = await readFile(tokenFile, 'utf8').catch((cause: unknown) => {
    throw Object.assign(unavailable(), { cause });
  });
  const token = text.trim();
  if (token === '') throw unavailable();
  return { token, registry_url: url };
}

function unavailable(): DomainError {
  return new DomainError(
    'unavailable',
    'The registry of this installation has no token now: try again later',
    30_000,
  );
}
