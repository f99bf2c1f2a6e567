// The grammar of sandbox ids, which occur in paths of the admin API, in documents, and as names of state files.

/** A label of a host name, in lower case only: some file systems cannot tell the cases apart. */
export const SANDBOX_ID: RegExp = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function isSandboxId(text: string): boolean {
  return SANDBOX_ID.test(text);
}
