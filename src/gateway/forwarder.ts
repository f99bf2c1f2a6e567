// Sends accepted requests to their targets. The adapter of http-proxy-3, which makes the request to the target, connects within
// the deadline, and aborts when the client leaves. Both legs of a message are ours: what http-proxy-3 reads of a request is a
// RequestLeg, and what it gets as a response goes to the response relay.
import { Agent, type IncomingMessage, type ServerResponse } from 'node:http';
import { createProxyServer, type ServerOptions } from 'http-proxy-3';
import type { ClientConnection } from './client-connection.ts';
import { DialingAgent } from './dialing-agent.ts';
import type { Exchange } from './exchange.ts';
import { type GatewayLimits, TARGET_KEEP_ALIVE_MS } from './limits.ts';
import { ForwardedRequest } from './forwarded-request.ts';
import { RequestLeg } from './request-leg.ts';
import type { WriteRefusal } from './refusal.ts';
import type { Target, TargetAddress } from './target.ts';

export type Forwarder = {
  forward(
    client: ClientConnection,
    exchange: Exchange,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
  ): void;
  close(): void;
};

/** After a 101 each side may end its half by itself. An option of net.connect, which the types of Agent do not list. */
const HALF_OPEN = { allowHalfOpen: true };

export function createForwarder(limits: GatewayLimits, writeRefusal?: WriteRefusal): Forwarder {
  // With this variable http-proxy-3 sends requests by fetch, which follows redirects and joins fields.
  if (process.env['FORCE_FETCH_PATH'] === 'true')
    throw new Error('FORCE_FETCH_PATH is set: unset it, because the gateway must not send requests by fetch');
  const agents = {
    kept: new Agent({ keepAlive: true, timeout: TARGET_KEEP_ALIVE_MS }),
    fresh: new Agent({ keepAlive: false }),
    upgraded: new Agent({ keepAlive: false, ...HALF_OPEN }),
  };
  const proxy = createProxyServer({
    // The response leg is ours.
    selfHandleResponse: true,
    // Both together: the path leaves as it is, without the changes of `new URL`.
    toProxy: true,
    prependPath: false,
    connectTimeout: limits.connectMs,
  });
  // Without a listener an error of a request ends the process. Each request has a callback of its own.
  proxy.on('error', () => undefined);
  proxy.on('proxyRes', (response, leg) => (leg as unknown as RequestLeg).owner.onResponse(response));
  const dial = (address: DialedAddress, outgoing: ServerResponse): Agent => {
    const agent = new DialingAgent(address, limits.connectMs);
    // Also emitted when the client has left. By itself a request that is destroyed does not end while it is being connected.
    outgoing.once('close', () => agent.abort());
    return agent;
  };
  return {
    forward(client, exchange, incoming, outgoing) {
      const send = (request: ForwardedRequest, connection: keyof typeof agents): void => {
        const leg = new RequestLeg(request, incoming, exchange);
        const { address } = targetOf(exchange);
        const kind = connection === 'kept' && leg.authenticatesConnection ? 'fresh' : connection;
        const options: ServerOptions = {
          target: optionsOf(address),
          agent: 'connect' in address ? dial(address, outgoing) : agents[kind],
          // Not on the leg: see there.
          method: exchange.plan.method,
        };
        proxy.web(leg as unknown as IncomingMessage, outgoing, options, (error) => request.onError(error));
      };
      new ForwardedRequest({ client, exchange, incoming, outgoing, writeRefusal, send }).start();
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

type DialedAddress = Extract<TargetAddress, { readonly connect: unknown }>;

function targetOf({ target }: Exchange): Target {
  if (!target) throw new Error('a request without a target was to be forwarded');
  return target;
}

function optionsOf(address: TargetAddress): NonNullable<ServerOptions['target']> {
  return 'port' in address ? address : { ...NOWHERE, ...('socketPath' in address && address) };
}

/** What is not looked up, because there is a socket. */
const NOWHERE = { host: 'localhost', port: 80 };
