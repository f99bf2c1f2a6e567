// Where a service of a box is: a port of the box, as a path of the gateway or as a host name of the gateway's domain. Pure.
import type { Site } from '../../../gateway/site/site.ts';

/** A port inside a box. */
export type Service = { readonly boxId: string; readonly port: number };

/** How clients reach services: the URL of the gateway, and the domain whose host names are services. */
export type ServiceSite = { readonly gatewayUrl: string; readonly domain: string | undefined };

/** A service as one request names it. */
export type ServicePlace = Service & {
  readonly by: 'path' | 'host';
  /** Of its pages, as browsers write it. */
  readonly origin: string;
  /** What precedes the path that the box gets: `/services/ID/PORT`, or nothing. */
  readonly prefix: string;
  /** The host name and port by which clients address it. */
  readonly authority: string;
};

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const PORT = '[1-9]\\d{0,4}';
const LABEL = new RegExp(`^(?<port>${PORT})--(?<id>${UUID})$`);
const PATH = new RegExp(`^/services/(?<id>${UUID})/(?<port>${PORT})(?=[/?]|$)`);

/**
 * Undefined: the request is for no service. `unknown`: it is, for one that cannot exist, and for nothing else. The host decides
 * first: what a page of a service by host name calls `/services/…` is its own.
 */
export function parseServicePlace(
  site: ServiceSite,
  { host, target }: { readonly host: string; readonly target: string },
): ServicePlace | 'unknown' | undefined {
  const label = labelOf(site, host);
  const found = (label === undefined ? PATH : LABEL).exec(label ?? target)?.groups;
  if (found === undefined) return label === undefined ? undefined : 'unknown';
  const service = { boxId: found['id'] ?? '', port: Number(found['port']) };
  if (service.port > 65_535) return 'unknown';
  return placeOf(site, service, label === undefined ? 'path' : 'host');
}

/** By host name where there is a domain. */
export function preferredPlace(site: ServiceSite, service: Service): ServicePlace {
  return placeOf(site, service, site.domain === undefined ? 'path' : 'host');
}

/** The URL of its root, with a slash at its end. */
export function urlOf({ origin, prefix }: ServicePlace): string {
  return `${origin}${prefix}/`;
}

export function siteOf(place: ServicePlace): Site {
  const { by, boxId, port } = place;
  return {
    ...place,
    aliases: ['localhost', '127.0.0.1', '[::1]'].map((host) => `${host}:${port}`),
    cookiePrefix: by === 'host' ? '' : `box-${boxId}-${port}-`,
  };
}

function placeOf({ gatewayUrl, domain = '' }: ServiceSite, service: Service, by: 'path' | 'host') {
  const gateway = new URL(gatewayUrl);
  const { boxId, port } = service;
  const name = by === 'path' ? gateway.hostname : `${port}--${boxId}.${domain}`;
  const authority = gateway.port === '' ? name : `${name}:${gateway.port}`;
  const prefix = by === 'path' ? `/services/${boxId}/${port}` : '';
  return { ...service, by, prefix, authority, origin: `${gateway.protocol}//${authority}` };
}

/** What precedes the domain in the Host of a request; undefined for a host outside of it, and for the domain itself. */
function labelOf({ domain }: ServiceSite, host: string): string | undefined {
  const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
  return domain !== undefined && name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1) : undefined;
}
