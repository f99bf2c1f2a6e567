// Sandboxes, and their workspace secrets, whose names can be read and whose values can only be written. The target
// validates the documents.
import { jsonResponse } from '../base/http/http-response.ts';
import { prefixed } from '../base/schema.ts';
import { adminError, type AdminResponse, problemResponse } from './admin-errors.ts';
import type { AdminRequest } from './route.ts';
import { parseSecretChanges } from './secret-changes.ts';
import type { AdminTarget } from './target.ts';

export function listSandboxes(_request: AdminRequest, target: AdminTarget): AdminResponse {
  return jsonResponse(200, { sandboxes: target.sandboxes() });
}

export function showSandbox(request: AdminRequest, target: AdminTarget): AdminResponse {
  const shown = target.sandbox(request.sandbox);
  return shown === undefined ? adminError('not_found') : jsonResponse(200, shown);
}

export async function createSandbox(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const change = await target.createSandbox(request.body);
  if (!change.ok) return problemResponse(change.problem, ['body']);
  const { sandbox, token, warnings } = change.value;
  const { id, revision } = sandbox;
  // Without a token of its own, `token` is undefined and left out.
  const body = { ...sandbox, token, warnings: prefixed(warnings, ['body']) };
  return { ...jsonResponse(201, body, { Location: `/v1/sandboxes/${id}` }), sandbox: id, revision };
}

export async function changeSandbox(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const change = await target.changeSandbox(request.sandbox, request.body);
  if (!change.ok) return problemResponse(change.problem, ['body']);
  const { sandbox, token } = change.value;
  return { ...jsonResponse(200, { ...sandbox, token }), revision: sandbox.revision };
}

export async function removeSandbox(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const change = await target.removeSandbox(request.sandbox);
  return change.ok ? { status: 204 } : problemResponse(change.problem, ['path', 'id']);
}

export function listSecrets(request: AdminRequest, target: AdminTarget): AdminResponse {
  const names = target.secretNames(request.sandbox);
  return names === undefined
    ? adminError('not_found')
    : jsonResponse(200, { workspace_secrets: toEntries(names) });
}

export async function changeSecrets(request: AdminRequest, target: AdminTarget): Promise<AdminResponse> {
  const changes = parseSecretChanges(request.body);
  if (!changes.ok) return problemResponse({ kind: 'invalid', issues: changes.issues }, ['body']);
  const change = await target.changeSecrets(request.sandbox, changes.value);
  if (!change.ok) return problemResponse(change.problem, ['body']);
  const { names, warnings } = change.value;
  return jsonResponse(200, { workspace_secrets: toEntries(names), warnings: prefixed(warnings, ['body']) });
}

function toEntries(names: readonly string[]): readonly { readonly key: string }[] {
  return names.map((key) => ({ key }));
}
