// What a sandbox can be called: in a path of the admin API, in a document, and as the name of the file that keeps it.

/** A label of a host name, in lower case only: some file systems cannot tell the cases apart. */
export const SANDBOX_ID: RegExp = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function isSandboxId(text: string): boolean {
  return SANDBOX_ID.test(text);
}
