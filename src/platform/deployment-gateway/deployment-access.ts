// Who may call a deployment that has no handler of its own: whoever has a key of its workspace, with the permission that the request
// needs. To all others it does not exist.
import { readRequestHead, requestIdOf } from '../../base/http/request-head.ts';
import { DomainError } from '../../base/domain-error.ts';
import type { GatewayRequest } from '../../gateway/target.ts';
import { type Access, inWorkspace, type WorkspaceGrant } from '../api/access.ts';
import { clientAddress, type TrustedProxies } from '../api/client-address.ts';
import { type Admission, type Applicant, enter } from '../api/shares/admission.ts';
import type { Permission } from '../identity/permission.ts';

export type Entered = {
  readonly access: Access<WorkspaceGrant>;
  readonly granted: WorkspaceGrant;
  readonly applicant: Applicant;
};

/** A workspace that no caller has: who asks for a deployment that does not exist takes the same way as who asks for another's. */
const NOBODYS_WORKSPACE = '00000000-0000-4000-8000-000000000000';

type Wanted = {
  /** That of the deployment; undefined where there is no such deployment. */
  readonly workspaceId: string | undefined;
  /** What precedes the path that the deployment gets. */
  readonly prefix: string;
};

/** Throws a DomainError. */
export async function enterDeployment(
  {
    admission,
    trustedProxies: trusted,
  }: { readonly admission: Admission; readonly trustedProxies: TrustedProxies },
  request: GatewayRequest,
  { workspaceId = NOBODYS_WORKSPACE, prefix }: Wanted,
): Promise<Entered> {
  const access = inWorkspace(permissionFor(request, prefix));
  const applicant = toApplicant(request, workspaceId, trusted);
  let isOfWorkspace = false;
  try {
    const granted = await enter(admission, access, applicant, {
      onCaller(partly) {
        isOfWorkspace = 'workspaceId' in partly;
      },
    });
    return { access, granted, applicant };
  } catch (error) {
    if (error instanceof DomainError && error.kind === 'forbidden' && !isOfWorkspace) throw noDeployment();
    throw error;
  }
}

/** Also the error for one of another workspace. */
export function noDeployment(): DomainError {
  return new DomainError('not_found', 'Deployment not found');
}

const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
/** What reads by POST, of the API that every deployment has. */
const READING_POST = /^\/(?:(?:assistants|threads)\/(?:search|count)|threads\/[^/]+\/history)(?:\?|$)/;

/** A WebSocket may do anything. */
export function permissionFor(
  { method, isUpgrade, target }: Pick<GatewayRequest, 'method' | 'isUpgrade' | 'target'>,
  prefix: string,
): Permission {
  const isReading =
    READING.has(method) || (method === 'POST' && READING_POST.test(target.slice(prefix.length)));
  return isReading && !isUpgrade ? 'deployments:read' : 'deployments:update';
}

const CREDENTIALS: readonly string[] = ['authorization', 'x-api-key'];

/** The workspace is that of the deployment, whatever the request names. No session of a browser counts. */
function toApplicant(request: GatewayRequest, workspaceId: string, trusted: TrustedProxies): Applicant {
  const sent = [...CREDENTIALS, 'x-request-id'].flatMap((name) =>
    request.values(name).flatMap((value) => [name, value]),
  );
  const { method } = request;
  const head = readRequestHead({ method, url: '/', rawHeaders: [...sent, 'x-tenant-id', workspaceId] });
  return { head, client: clientOf(request, trusted), requestId: requestIdOf(head), origin: undefined };
}

/** Behind the proxies that are trusted. */
export function clientOf(request: GatewayRequest, trusted: TrustedProxies) {
  const peer = { remoteAddress: request.clientAddress, remotePort: undefined };
  const forwardedFor = request.values('x-forwarded-for').join(', ');
  return clientAddress(peer, forwardedFor === '' ? undefined : forwardedFor, trusted);
}
