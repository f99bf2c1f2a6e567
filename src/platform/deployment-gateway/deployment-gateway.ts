// The gateway of deployments: the listener on which their clients reach them, by path or by host name. The runner says which instances
// serve a deployment; the gateway decides who may use it, as on the API, or lets the handler of the deployment decide.
import type { ListenAddress } from '../../base/listen-address.ts';
import type { Log } from '../../base/log.ts';
import { createGateway, type GatewayOptions } from '../../gateway/gateway.ts';
import type { GatewayLimits } from '../../gateway/limits.ts';
import type { GatewayRecord } from '../../gateway/record.ts';
import type { Target } from '../../gateway/target.ts';
import { isTrustedPeer, type TrustedProxies } from '../api/client-address.ts';
import type { Meters } from '../api/metrics.ts';
import { listenAt } from '../api/server.ts';
import type { Admission } from '../api/shares/admission.ts';
import { systemClock } from '../api/shares/clock.ts';
import { FairQueue } from '../api/shares/fair-queue.ts';
import { addressOf, type GatewaySite, prefixOf } from './deployment-address.ts';
import {
  credentialFields,
  type DeploymentTargetParts,
  findDeployment,
  type Found,
} from './deployment-target.ts';
import { type ServedDeployment, type TargetTable, Targets } from './target-table.ts';

export type DeploymentGatewaySettings = {
  readonly listen: ListenAddress;
  /** How clients reach it; undefined: at its listener. */
  readonly publicUrl: string | undefined;
  /** Deployments have `<name>-<first 8 digits of the id>.<domain>` besides their path. */
  readonly domain: string | undefined;
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** That run at once for one organization; a key may have half of them. */
  readonly organizationRequests: number;
};

export type DeploymentGatewayOptions = {
  readonly settings: DeploymentGatewaySettings;
  readonly admission: Admission;
  readonly trustedProxies: TrustedProxies;
  readonly log: Log;
  readonly meters?: Meters | undefined;
  /** For requests that run when the gateway closes. */
  readonly drainMs: number;
};

export type DeploymentGateway = {
  /** How clients reach it. */
  readonly url: string;
  /** Where it listens. */
  readonly listening: string;
  readonly targets: TargetTable;
  /** Where clients reach a deployment: its `custom_url`. */
  addressOf(deployment: Pick<ServedDeployment, 'id' | 'name'>): string;
  /** The path that it removes from requests to a deployment: its `mountPrefix`. */
  prefixOf(deploymentId: string): string;
  /** Stops accepting; clients of WebSockets are asked to connect again. */
  close(): Promise<void>;
};

/** Throws an Error that says which setting to change. */
export async function createDeploymentGateway(options: DeploymentGatewayOptions): Promise<DeploymentGateway> {
  const { settings, admission, trustedProxies, log, meters, drainMs } = options;
  requireSettings(settings);
  const targets = new Targets();
  const requests = createRequestShares(settings);
  let url = settings.publicUrl ?? '';
  const site = (): GatewaySite => ({ url, domain: settings.domain });
  const parts: DeploymentTargetParts = { targets, admission, trustedProxies, requests, site };
  const gateway = createGateway({
    ...createDecisions(parts),
    ...{ log, credentialFields },
    writeRefusal: ({ message }) => ({ detail: message }),
    limitsAddress: (address) => !isTrustedPeer(address, trustedProxies),
    onRecord: createRecorder(log, meters),
    limits: limitsOf(settings),
  });
  meters?.gauge('deployment_connections', 'Connections of clients to deployments', () => gateway.connections);
  const listening = await listenAt(gateway.listener, settings.listen, SETTING);
  url = settings.publicUrl ?? listening;
  let closing: Promise<void> | undefined;
  return {
    ...{ url, listening, targets, prefixOf },
    addressOf: (deployment) => addressOf(site(), deployment),
    close: () => (closing ??= gateway.close(drainMs)),
  };
}

const SETTING = 'runner.gateway.listen or SALLYPORT_PLATFORM_RUNNER_GATEWAY_LISTEN';

function requireSettings({ listen, publicUrl, domain }: DeploymentGatewaySettings): void {
  if (publicUrl === undefined && (listen.host === '0.0.0.0' || listen.host === '::'))
    throw new Error(`runner.gateway.public_url must be set: no client can connect to ${listen.host}`);
  if (publicUrl !== undefined && domain !== undefined && new URL(publicUrl).hostname.endsWith(`.${domain}`))
    throw new Error(
      `runner.gateway.public_url must have a host outside of ${domain}, whose host names are deployments`,
    );
}

const TOO_MANY = 'Too many requests to the deployments of this organization or key at the same time';

function createRequestShares({ connections, organizationRequests }: DeploymentGatewaySettings): FairQueue {
  const perKey = Math.max(1, Math.floor(organizationRequests / 2));
  const shares = { places: connections, perOrganization: organizationRequests, perKey };
  return new FairQueue({ ...shares, waitMs: 0, maxWaiting: 0 }, systemClock, TOO_MANY);
}

/** A graph may be silent for as long. */
const SILENT_MS = 3_600_000;

function limitsOf({ connections, connectionsPerAddress }: DeploymentGatewaySettings): Partial<GatewayLimits> {
  return {
    ...{ maxConnections: connections, maxConnectionsPerAddress: connectionsPerAddress },
    ...{ maxDeciding: connections, responseIdleMs: SILENT_MS },
  };
}

function createDecisions(parts: DeploymentTargetParts): Pick<GatewayOptions, 'findTarget' | 'authorize'> {
  const found: WeakMap<Target, Found> = new WeakMap();
  return {
    findTarget(request) {
      const one = findDeployment(parts, request);
      if (one !== undefined) found.set(one.target, one);
      return one?.target;
    },
    authorize(_, target) {
      const one = found.get(target);
      if (one === undefined) throw new Error('a target that was not found');
      return one.authorize();
    },
  };
}

/** The client left before a response began, as the API counts it. */
const LEFT = 499;

/** One line in the log for each request, as on the API. */
function createRecorder(log: Log, meters: Meters | undefined): (record: GatewayRecord) => void {
  const count = meters?.counter('deployment_requests_total', 'Finished requests to deployments', [
    'status',
    'refusal',
    'end',
  ]);
  return ({ method, target, status = LEFT, refusal, end, bytesUp, bytesDown, durationMs }) => {
    const [, deployment] = target?.split(' ') ?? [];
    count?.({ status: String(status), refusal: refusal ?? 'none', end });
    const bytes = { bytes_up: bytesUp, bytes_down: bytesDown };
    const ms = Math.round(durationMs * 100) / 100;
    log.info({ method, deployment, status, refusal, end, ...bytes, ms }, 'deployment request');
  };
}
