// Workspace secrets of a sandbox: names can be read, values only be written.
import { type AdminResponse, ok } from './answer.ts';
import { sendProblem } from './problem-answer.ts';
import type { AdminRequest } from './route.ts';
import { noSuchSandbox } from './sandbox-routes.ts';
import { parseSecretChanges } from './secret-changes.ts';
import type { AdminTarget } from './target.ts';

export function listSecrets(request: AdminRequest, target: AdminTarget): AdminResponse {
  const names = target.secretNames(request.sandbox);
  return names === undefined ? noSuchSandbox : ok({ workspace_secrets: toEntries(names) });
}

export async function changeSecrets(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const changes = parseSecretChanges(request.body);
  if (!changes.ok) return sendProblem({ kind: 'invalid', issues: changes.issues }, ['body']);
  const change = await target.changeSecrets(request.sandbox, changes.value);
  if (!change.ok) return sendProblem(change.problem, ['body']);
  const { names, warnings } = change.value;
  const inRequest = warnings.map((issue) => ({ ...issue, loc: ['body', ...issue.loc] }));
  return ok({ workspace_secrets: toEntries(names), warnings: inRequest });
}

function toEntries(names: readonly string[]): readonly { readonly key: string }[] {
  return names.map((key) => ({ key }));
}
