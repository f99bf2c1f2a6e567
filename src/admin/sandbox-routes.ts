// Listing, creating, changing and removing sandboxes. Their documents are judged by the target.
import { type AdminResponse, created, ok, refused } from './answer.ts';
import { sendProblem } from './problem-answer.ts';
import type { AdminRequest } from './route.ts';
import type { AdminTarget } from './target.ts';

export const noSuchSandbox: AdminResponse = refused({
  status: 404,
  reason: 'not_found',
  detail: 'There is no such sandbox: GET /v1/sandboxes lists those that there are',
});

export function listSandboxes(_request: AdminRequest, target: AdminTarget): AdminResponse {
  return ok({ sandboxes: target.sandboxes() });
}

export function showSandbox(request: AdminRequest, target: AdminTarget): AdminResponse {
  const shown = target.sandbox(request.sandbox);
  return shown === undefined ? noSuchSandbox : ok(shown);
}

export async function createSandbox(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const change = await target.createSandbox(request.body);
  if (!change.ok) return sendProblem(change.problem, ['body']);
  const { sandbox, token, warnings } = change.value;
  const inRequest = warnings.map((issue) => ({ ...issue, loc: ['body', ...issue.loc] }));
  return created(
    { ...sandbox, ...(token === undefined ? {} : { token }), warnings: inRequest },
    { fields: { Location: `/v1/sandboxes/${sandbox.id}` }, sandbox: sandbox.id, revision: sandbox.revision },
  );
}

export async function changeSandbox(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const change = await target.changeSandbox(request.sandbox, request.body);
  if (!change.ok) return sendProblem(change.problem, ['body']);
  const { sandbox, token } = change.value;
  return ok({ ...sandbox, ...(token === undefined ? {} : { token }) }, { revision: sandbox.revision });
}

export async function removeSandbox(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const change = await target.removeSandbox(request.sandbox);
  return change.ok ? { status: 204 } : sendProblem(change.problem, ['path', 'id']);
}
