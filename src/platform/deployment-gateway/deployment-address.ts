// Where a deployment is: a path of the gateway by its id, or a host name of the gateway's domain by its name and id. Pure.
import type { Site } from '../../gateway/site/site.ts';
import { deploymentUrl, gatewayTemplate, hostLabel } from '../deployments/gateway-address.ts';

/** How clients reach the gateway, and the domain whose host names are deployments. */
export type GatewaySite = { readonly url: string; readonly domain: string | undefined };

type Named = { readonly id: string; readonly name: string };

/** What a request names; whether there is such a deployment is another question. */
export type DeploymentName =
  | { readonly by: 'path'; readonly id: string }
  /** Of the host name. */
  | { readonly by: 'host'; readonly label: string };

const PATH = /^\/d\/(?<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?=[/?]|$)/;

/** Undefined: it is for no deployment. The host decides first: each has all paths of its host name. */
export function parseDeploymentName(
  { domain }: Pick<GatewaySite, 'domain'>,
  { host, target }: { readonly host: string; readonly target: string },
): DeploymentName | undefined {
  const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
  if (domain !== undefined && name.endsWith(`.${domain}`))
    return { by: 'host', label: name.slice(0, -domain.length - 1) };
  const id = PATH.exec(target)?.groups?.['id'];
  return id === undefined ? undefined : { by: 'path', id };
}

export function prefixOf(id: string): string {
  return `/d/${id}`;
}

/** The URL of its root, without a slash at the end: clients append paths. */
export function addressOf({ url, domain }: GatewaySite, deployment: Named): string {
  return deploymentUrl(gatewayTemplate(url, domain), deployment);
}

/** `host`: as the client has sent it, which the deployment sees too. */
export function siteOf(
  { url, domain = '' }: GatewaySite,
  deployment: Named,
  by: Site['by'],
  host?: string,
): Site {
  const gateway = new URL(url);
  const name = by === 'path' ? gateway.hostname : `${hostLabel(deployment)}.${domain}`;
  const authority = gateway.port === '' ? name : `${name}:${gateway.port}`;
  return {
    ...{ by, authority, origin: `${gateway.protocol}//${authority}` },
    prefix: by === 'path' ? prefixOf(deployment.id) : '',
    aliases: host === undefined ? [] : [host.toLowerCase()],
    cookiePrefix: by === 'path' ? `deployment-${deployment.id}-` : '',
  };
}
