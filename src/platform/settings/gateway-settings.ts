// The settings of the gateway to the ports of sandboxes.
import type { ListenAddress } from '../../base/listen-address.ts';
import { z } from '../../base/schema.ts';
import { asText, type Variable } from '../../base/variable-overlay.ts';
import { domain, gatewayUrl, limit, listenAddress } from '../setting-schemas.ts';

export const gatewaySettings = z
  .strictObject({
    listen: listenAddress.optional(),
    public_url: gatewayUrl.optional(),
    domain: domain.optional(),
    connections: limit.default(4_096),
    connections_per_address: limit.default(256),
    organization_requests: limit.default(256),
    start_wait_ms: limit.max(600_000).default(30_000),
  })
  .prefault({});

const PREFIX = 'SALLYPORT_PLATFORM_GATEWAY_';

export const gatewayVariables: readonly (readonly [name: string, key: string, read: Variable['read']])[] = [
  [`${PREFIX}LISTEN`, 'gateway.listen', asText],
  [`${PREFIX}PUBLIC_URL`, 'gateway.public_url', asText],
  [`${PREFIX}DOMAIN`, 'gateway.domain', asText],
  [`${PREFIX}CONNECTIONS`, 'gateway.connections', Number],
  [`${PREFIX}CONNECTIONS_PER_ADDRESS`, 'gateway.connections_per_address', Number],
  [`${PREFIX}ORGANIZATION_REQUESTS`, 'gateway.organization_requests', Number],
  [`${PREFIX}START_WAIT_MS`, 'gateway.start_wait_ms', Number],
];

/** Of the sandboxes. */
export function toGatewayConfig(gateway: z.output<typeof gatewaySettings>, listen: ListenAddress) {
  return {
    listen: gateway.listen ?? besideApi(listen),
    /** How clients reach the gateway of this machine; undefined: at its listener. */
    publicUrl: gateway.public_url?.replace(/\/$/, ''),
    domain: gateway.domain,
    connections: gateway.connections,
    connectionsPerAddress: gateway.connections_per_address,
    /** That run at once of one organization; a key may have half of them. */
    organizationRequests: gateway.organization_requests,
    startWaitMs: gateway.start_wait_ms,
  };
}

/** On loopback, at the port after that of the API: two processes of a machine have two of each. */
function besideApi({ port }: ListenAddress): ListenAddress {
  return { host: '127.0.0.1', port: port === 0 ? 0 : port === 65_535 ? port - 1 : port + 1 };
}
