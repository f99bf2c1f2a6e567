// Checks what the operator lets builds reach. What is wrong would otherwise be found by each build, long after the start.
import { InvalidInput } from '../../../base/domain-error.ts';
import { InputError } from '../../../base/input-error.ts';
import { parseDocument } from '../../proxy-documents/parsed-document.ts';

/** Throws an InputError that names the entry: builds have these destinations in an access control and as direct ones. */
export function requireBuildHosts(hosts: readonly string[]): void {
  if (hosts.length === 0) return;
  try {
    parseDocument(
      { access_control: { allow_list: hosts }, no_proxy: hosts },
      { allowsPrivateCallbacks: true },
    );
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const [issue] = error.issues;
    const at = issue?.loc.findLast((part) => typeof part === 'number');
    const entry = at === undefined ? '' : `[${at}]`;
    throw new InputError(`runner.builds.allow_hosts${entry}: ${issue?.msg ?? 'is invalid'}`, {
      cause: error,
    });
  }
}
