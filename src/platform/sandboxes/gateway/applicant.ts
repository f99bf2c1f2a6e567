// Who sent a request to the gateway, in the form in which the API finds out: by a key. A cookie is not read at all, because a browser
// sends it along with requests that its user did not make.
import { readRequestHead, requestIdOf } from '../../../base/http/request-head.ts';
import type { GatewayRequest } from '../../../gateway/target.ts';
import type { Applicant } from '../../api/shares/admission.ts';
import { clientAddress, type TrustedProxies } from '../../api/client-address.ts';
import { SERVICE_TOKEN_FIELD } from '../services/service-request.ts';

/** None of them reaches a box. */
export const credentialFields: readonly string[] = [
  ...['x-service-key', 'x-tenant-id', 'x-organization-id'],
  SERVICE_TOKEN_FIELD,
];

const READ = ['authorization', 'x-api-key', 'x-tenant-id', 'x-organization-id', 'x-forwarded-for'];

export function createApplicantReader(trusted: TrustedProxies): (request: GatewayRequest) => Applicant {
  return (request) => {
    const { method, clientAddress: remoteAddress } = request;
    const rawHeaders = [...READ, 'x-request-id'].flatMap((name) =>
      request.values(name).flatMap((value) => [name, value]),
    );
    const head = readRequestHead({ method, url: '/', rawHeaders });
    const forwardedFor = head.field('x-forwarded-for');
    const client = clientAddress({ remoteAddress, remotePort: undefined }, forwardedFor, trusted);
    return { head, client, requestId: requestIdOf(head), origin: undefined };
  };
}
