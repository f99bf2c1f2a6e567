// Where one request to a deployment goes, who may send it, and what the instance sees of it. Without a handler a key of the platform
// decides and stays here; with one, what the client has sent passes, but for keys of the platform.
import { DomainError } from '../../base/domain-error.ts';
import { refusalOfError } from '../../gateway/domain-refusal.ts';
import { type Refusal, refuse } from '../../gateway/refusal.ts';
import { toSiteFields } from '../../gateway/site/client-fields.ts';
import { toTargetCookies } from '../../gateway/site/site-cookies.ts';
import type { Site } from '../../gateway/site/site.ts';
import type { GatewayRequest, Grant, Target } from '../../gateway/target.ts';
import { AGENT_FIELDS } from '../agent-server/contract.ts';
import { isTrustedPeer, type TrustedProxies } from '../api/client-address.ts';
import { type Admission, partyOf } from '../api/shares/admission.ts';
import type { FairQueue, Party } from '../api/shares/fair-queue.ts';
import { Held } from '../api/shares/held.ts';
import { containsKey } from '../identity/api-key.ts';
import { clientOf, type Entered, enterDeployment, noDeployment } from './deployment-access.ts';
import { type GatewaySite, parseDeploymentName, prefixOf, siteOf } from './deployment-address.ts';
import { isPreflight, refusalFieldsFor } from './deployment-cors.ts';
import { connectGoing, type Going, RETRY_MS } from './instance-connection.ts';
import type { Served, Taken, Targets } from './target-table.ts';

export type DeploymentTargetParts = {
  readonly targets: Targets;
  readonly admission: Admission;
  readonly trustedProxies: TrustedProxies;
  /** Requests that run, WebSockets included. */
  readonly requests: FairQueue;
  site(): GatewaySite;
};

/** A request for a deployment: one that there is, or not. */
export type Found = {
  readonly target: Target;
  authorize(): Promise<Grant | Refusal>;
};

/** Undefined: it is for no deployment, whoever sends it. */
export function findDeployment(parts: DeploymentTargetParts, request: GatewayRequest): Found | undefined {
  const { targets } = parts;
  const named = parseDeploymentName(parts.site(), request);
  if (named === undefined) return undefined;
  const served = named.by === 'path' ? targets.find(named.id) : targets.findByLabel(named.label);
  const prefix = named.by === 'path' ? prefixOf(named.id) : '';
  if (served === undefined) return toUnknown(parts, request, prefix);
  const site = siteOf(parts.site(), served.deployment, named.by, request.host);
  const going: Going = { taken: undefined, isOver: false, onLeave: undefined };
  const target: Target = {
    name: `deployment ${served.deployment.id}`,
    ...(site.prefix !== '' && { prefix: site.prefix }),
    address: { connect: (signal) => connectGoing(targets, served.deployment.id, going, signal) },
    responseFields: (fields, status) => toSiteFields(site, fields, { isRedirect: isRedirect(status) }),
    refusalFields: refusalFieldsFor(served, request),
  };
  return { target, authorize: () => authorize(parts, { request, served, site, going }) };
}

/** Clients of agent servers append the Location of a stream to the address that they have, as it is. */
function isRedirect(status: number): boolean {
  return status === 201 || (status >= 300 && status < 400);
}

/** The same as for a deployment of somebody else. */
function toUnknown(parts: DeploymentTargetParts, request: GatewayRequest, prefix: string): Found {
  const connect = (): never => {
    throw new Error('there is no such deployment');
  };
  return {
    target: {
      ...{ name: 'deployment', address: { connect } },
      refusalFields: refusalFieldsFor(undefined, request),
    },
    async authorize() {
      try {
        await enterDeployment(parts, request, { workspaceId: undefined, prefix });
        throw noDeployment();
      } catch (error) {
        return refusalOfError(error);
      }
    },
  };
}

type Asked = {
  readonly request: GatewayRequest;
  readonly served: Served;
  readonly site: Site;
  readonly going: Going;
};

async function authorize(parts: DeploymentTargetParts, asked: Asked): Promise<Grant | Refusal> {
  const { request, served, site } = asked;
  const held = new Held();
  try {
    const entered = await enterAs(parts, asked);
    if (entered !== undefined) held.until(parts.admission.streams, entered);
    held.onEnd(await parts.requests.enter(toParty(served, entered)));
    const leaving = new AbortController();
    const taken = take(parts, asked, leaving);
    if (taken === undefined) {
      held.end();
      return refuseUnready(asked);
    }
    held.onEnd(() => endGoing(asked.going));
    // Another revision serves by now, and somebody else decides about its callers.
    if (taken.revision.access !== served.revision?.access) {
      held.end();
      return authorize(parts, { ...asked, served: parts.targets.find(served.deployment.id) ?? served });
    }
    return {
      passes: passesOf(request, served),
      mapCookies: (value) => toTargetCookies(site, value),
      adds: addedFields(asked, taken, entered),
      client: clientOfRequest(parts, request),
      leaving: leaving.signal,
      signal: held.signal,
      onEnd: () => held.end(),
    };
  } catch (error) {
    held.end();
    if (request.signal.aborted) return refuse('target_closed');
    return refusalOfError(held.signal.aborted ? held.signal.reason : error);
  }
}

/** Undefined where a handler decides, and for a preflight, which has no credentials: the deployment says which pages may call it. */
async function enterAs(
  parts: DeploymentTargetParts,
  { request, served, site }: Asked,
): Promise<Entered | undefined> {
  const wanted = { workspaceId: served.deployment.workspaceId, prefix: site.prefix };
  if (!hasHandler(served)) return isPreflight(request) ? undefined : enterDeployment(parts, request, wanted);
  if (!isStudio(request)) return undefined;
  try {
    return await enterDeployment(parts, request, wanted);
  } catch (error) {
    // The field does not count then, and the handler decides as if it had not been sent.
    if (error instanceof DomainError && NO_CALLER.has(error.kind)) return undefined;
    throw error;
  }
}

const NO_CALLER: ReadonlySet<string> = new Set(['unauthenticated', 'forbidden', 'not_found']);

function hasHandler({ revision }: Served): boolean {
  return revision?.access === 'handler';
}

/** Who opens the deployment in the studio sends a key of the platform, which only the platform can check. */
function isStudio(request: GatewayRequest): boolean {
  const [scheme = ''] = request.values('x-auth-scheme');
  return scheme.toLowerCase() === 'langsmith' && request.values('x-api-key').some(containsKey);
}

function toParty({ deployment }: Served, entered: Entered | undefined): Party {
  const known = entered && partyOf(entered.access, entered.granted);
  return known ?? { organization: deployment.organizationId, key: `deployment ${deployment.id}` };
}

function take(
  { targets }: DeploymentTargetParts,
  { request, served, going }: Asked,
  leaving: AbortController,
): Taken | undefined {
  const onLeave = request.isUpgrade ? () => leaving.abort() : undefined;
  const { id } = served.deployment;
  Object.assign(going, { taken: targets.take(id, onLeave), isOver: false, onLeave });
  if (going.taken !== undefined) return going.taken;
  if (targets.find(id) === undefined) throw noDeployment();
  return undefined;
}

function endGoing(going: Going): void {
  going.isOver = true;
  going.taken?.release();
}

/** A preflight that fails would hide from the page why: the request that follows it is refused instead. */
function refuseUnready({ request, served }: Asked): Refusal {
  if (isPreflight(request) && refusalFieldsFor(served, request).length > 0) return refuse('preflight');
  return refuse('target_unavailable', {
    message: UNREADY,
    name: 'ServiceUnavailable',
    retryAfterMs: RETRY_MS,
  });
}

const UNREADY = 'No revision of this deployment is ready: try again';

const CREDENTIALS: readonly string[] = ['authorization', 'x-api-key', 'x-tenant-id', 'x-service-key'];

/** In lower case; what is not among them does not reach the deployment. */
export const credentialFields: readonly string[] = [
  ...CREDENTIALS,
  'x-organization-id',
  ...Object.values(AGENT_FIELDS),
];

/** Keys of the platform stay here, whoever decides: the author of a deployment must not become its callers. */
function passesOf(request: GatewayRequest, served: Served): readonly string[] {
  const own = hasHandler(served) ? CREDENTIALS.filter((name) => !request.values(name).some(containsKey)) : [];
  return ['cookie', ...own];
}

function addedFields(
  { site }: Asked,
  { instance }: Taken,
  entered: Entered | undefined,
): readonly (readonly [string, string])[] {
  const fields: (readonly [string, string])[] = [[AGENT_FIELDS.gateway, instance.gatewayToken]];
  if (site.prefix !== '') fields.push(['X-Forwarded-Prefix', site.prefix]);
  if (entered === undefined) return fields;
  const { caller } = entered.granted;
  return [...fields, [AGENT_FIELDS.caller, caller.userId ?? caller.keyId], [AGENT_FIELDS.key, caller.keyId]];
}

function clientOfRequest(
  { trustedProxies: trusted }: DeploymentTargetParts,
  request: GatewayRequest,
): NonNullable<Grant['client']> {
  const address = clientOf(request, trusted).host;
  if (!isTrustedPeer(request.clientAddress ?? '', trusted)) return { address };
  const [scheme] = request.values('x-forwarded-proto');
  return { address, scheme: scheme === 'https' ? scheme : undefined };
}
