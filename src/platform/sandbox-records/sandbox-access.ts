// Access with the token of a sandbox: the call knows the sandbox, and no caller.
import { DomainError } from '../../base/domain-error.ts';
import { type Access, credentialsOf } from '../api/access.ts';
import { authenticateSandbox, type SandboxGrant } from './sandbox-token.ts';

export const withSandboxToken: Access<SandboxGrant> = {
  to: 'sandbox',
  schemes: ['Sandbox Key', 'Sandbox Bearer'],
  parameters: [],
  async enter({ db, authenticator, ...request }) {
    const credentials = credentialsOf(request);
    try {
      return await authenticateSandbox(db, credentials);
    } catch (error) {
      const isShown = (credentials.apiKey ?? credentials.bearer) !== undefined;
      const isWrong = error instanceof DomainError && error.kind === 'unauthenticated';
      throw isShown && isWrong ? authenticator.countFailure(credentials.peer, error) : error;
    }
  },
  confirm: ({ db, ...request }) => authenticateSandbox(db, credentialsOf(request)),
  callerOf: ({ workspaceId, sandbox }) => `${workspaceId}/${sandbox}`,
};
