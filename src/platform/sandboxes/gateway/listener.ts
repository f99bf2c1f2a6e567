// The gateway of this machine: the listener on which clients reach what runs in its boxes. It knows places alone; each decides for
// itself who may use it.
import type { AddressInfo } from 'node:net';
import { listenerUrl } from '../../../base/listen-address.ts';
import type { Log } from '../../../base/log.ts';
import { createGateway, type Gateway } from '../../../gateway/gateway.ts';
import type { GatewayLimits } from '../../../gateway/limits.ts';
import type { GatewayRecord } from '../../../gateway/record.ts';
import { Refusal } from '../../../gateway/refusal.ts';
import type { GatewayRequest, Target } from '../../../gateway/target.ts';
import { isTrustedPeer } from '../../api/client-address.ts';
import type { Meters } from '../../api/metrics.ts';
import { listenAt } from '../../api/server.ts';
import type { StartContext } from '../../module.ts';
import { credentialFields } from './applicant.ts';
import type { Found, Place } from './place.ts';
import { toRefusal, writeRefusal } from './refusals.ts';

export type OpenGatewayListener = {
  /** How clients reach it: with the path of a place behind it. */
  readonly url: string;
  /** Stops accepting. Requests that run may end until the limit; clients of WebSockets are asked to connect again. */
  close(): Promise<void>;
};

export type ListenerOptions = {
  readonly config: Pick<StartContext['config'], 'gateway' | 'limits' | 'trustedProxies'>;
  readonly places: readonly Place[];
  readonly log: Log;
  readonly meters: Meters | undefined;
};

/** A request waits for a start, and for turns and locks besides. */
const DECIDING_MS = 15_000;
/** A command may be silent for as long. */
const SILENT_MS = 3_600_000;

/** Throws an Error that says which setting to change. */
export async function openGatewayListener(options: ListenerOptions): Promise<OpenGatewayListener> {
  const { config, log, meters } = options;
  const { listen, publicUrl, domain } = config.gateway;
  if (publicUrl === undefined && (listen.host === '0.0.0.0' || listen.host === '::'))
    throw new Error(`gateway.public_url must be set: no client can connect to ${listen.host}`);
  if (publicUrl !== undefined && domain !== undefined && new URL(publicUrl).hostname.endsWith(`.${domain}`))
    throw new Error(
      `gateway.public_url must have a host outside of ${domain}, whose host names are services`,
    );
  const gateway = createGateway({
    ...decisionsOf(options.places),
    ...{ log, credentialFields, writeRefusal },
    limitsAddress: (address) => !isTrustedPeer(address, config.trustedProxies),
    onRecord: createRecorder(log, meters),
    limits: gatewayLimits(config.gateway),
  });
  meters?.gauge('gateway_connections', 'Connections of clients to sandboxes', () => gateway.connections);
  const setting = 'gateway.listen or SALLYPORT_PLATFORM_GATEWAY_LISTEN';
  await listenAt(gateway.listener, listen, setting);
  const closing = onceClosed(gateway, config.limits.drainMs);
  return { url: publicUrl ?? listenerUrl(gateway.listener.address() as AddressInfo), close: closing };
}

export function gatewayLimits(
  config: Pick<ListenerOptions['config']['gateway'], 'connections' | 'connectionsPerAddress' | 'startWaitMs'>,
): Partial<GatewayLimits> {
  const { connections, connectionsPerAddress, startWaitMs } = config;
  return {
    ...{ maxConnections: connections, maxConnectionsPerAddress: connectionsPerAddress },
    // Requests wait here for boxes that start. Each organization has its part of them: a lower limit, which has no parts, would let a
    // few organizations keep out all others.
    maxDeciding: connections,
    ...{ decideMs: startWaitMs + DECIDING_MS, responseIdleMs: SILENT_MS },
  };
}

function onceClosed(gateway: Gateway, drainMs: number): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => (closing ??= gateway.close(drainMs));
}

function decisionsOf(places: readonly Place[]) {
  const found: WeakMap<Target, Found> = new WeakMap();
  return {
    findTarget(request: GatewayRequest): Target | Refusal | undefined {
      for (const place of places) {
        const one = place.find(request);
        if (one === undefined || one instanceof Refusal) {
          if (one !== undefined) return one;
          continue;
        }
        found.set(one.target, one);
        return one.target;
      }
      return undefined;
    },
    async authorize(_: GatewayRequest, target: Target) {
      const one = found.get(target);
      if (one === undefined) throw new Error('a target that no place has found');
      try {
        return await one.authorize();
      } catch (error) {
        return toRefusal(error);
      }
    },
  };
}

/** One line in the log for each request, as on the API. */
function createRecorder(log: Log, meters: Meters | undefined): (record: GatewayRecord) => void {
  const count = meters?.counter('gateway_requests_total', 'Finished requests to sandboxes', [
    'place',
    'status',
    'refusal',
  ]);
  return ({ method, target, status, refusal, end, bytesUp, bytesDown, durationMs }) => {
    const [place = 'none', box] = target?.split(' ') ?? [];
    count?.({ place, status: String(status ?? LEFT), refusal: refusal ?? 'none' });
    const line = {
      ...{ method, place, box, status, refusal, end },
      bytes_up: bytesUp,
      bytes_down: bytesDown,
    };
    log.info({ ...line, ms: Math.round(durationMs * 100) / 100 }, 'gateway request');
  };
}

/** The client left before a response began, as the API counts it. */
const LEFT = 499;
