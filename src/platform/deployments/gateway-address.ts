// Where clients reach a deployment: what the gateway of its runner tells, with the deployment filled in. Pure.

/** Of the hexadecimal digits of an id: enough to tell the deployments of one name apart. */
const ID_DIGITS = 8;
/** RFC 1035, section 2.3.4. */
const MAX_LABEL = 63;

type Named = { readonly id: string; readonly name: string };

/** What a runner tells of its gateway: with a domain each deployment has a host name below it. */
export function gatewayTemplate(url: string, domain: string | undefined): string {
  if (domain === undefined) return url;
  const { protocol, port } = new URL(url);
  return `${protocol}//{label}.${domain}${port === '' ? '' : `:${port}`}`;
}

/** `{label}` and `{id}` in a gateway's URL are those of the deployment; without either its path is `/d/<id>`. */
export function deploymentUrl(gatewayUrl: string, deployment: Named): string {
  const filled = gatewayUrl
    .replaceAll('{label}', hostLabel(deployment))
    .replaceAll('{id}', () => deployment.id);
  return filled === gatewayUrl ? `${gatewayUrl.replace(/\/+$/, '')}/d/${deployment.id}` : filled;
}

/** `<name>-<id8>`: one label of a host, whatever the name. What precedes the domain of the gateway. */
export function hostLabel({ id, name }: Named): string {
  const end = `-${id.replaceAll('-', '').slice(0, ID_DIGITS)}`;
  const start = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_LABEL - end.length)
    .replaceAll(/^-+|-+$/g, '');
  return `${start === '' ? 'd' : start}${end}`;
}
