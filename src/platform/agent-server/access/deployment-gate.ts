// Makes the gate of an agent server: by the handlers of the deployment, by keys, or open.
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { DomainError, type GivenRefusal } from '../../../base/domain-error.ts';
import { pathToUnstorable } from '../../../base/json/storable-text.ts';
import type { Log } from '../../../base/log.ts';
import type { Access } from '../../api/access.ts';
import type { Deployment } from '../configuration/deployment.ts';
import type { AgentSettings } from '../configuration/settings.ts';
import type { GraphWorkers } from '../workers/graph-workers.ts';
import { compileHeaders, type ReadHeaders } from './configurable-headers.ts';
import { compileFilter, type Filter, FilterError, findForeign } from './filters.ts';
import type { AgentGrant, AuthEvent, Authorization, Gate } from './gate.ts';
import { createGatewayAccess } from './gateway-access.ts';
import type { GatewayCallers } from './gateway-callers.ts';
import { createHandlerAccess } from './handler-access.ts';
import { createHandlerCalls, type HandlerCalls, reportHandler } from './handler-calls.ts';
import { createKeyAccess } from './key-access.ts';
import type { KeyPort } from './keys.ts';
import { createOpenAccess } from './open-access.ts';

export type GateParts = {
  readonly deployment: Pick<Deployment, 'auth' | 'http'>;
  readonly settings: Pick<AgentSettings, 'access' | 'isStudio'> & Partial<Pick<AgentSettings, 'isLoopback'>>;
  readonly workers: Pick<GraphWorkers, 'call'>;
  /** Of `keys` and `key_file`; with a handler, for the studio. */
  readonly keys: KeyPort | undefined;
  /** Of an instance of a deployment. */
  readonly callers?: GatewayCallers | undefined;
  readonly log: Log;
  /** Of one call of a handler; 10 seconds when absent. */
  readonly handlerTimeoutMs?: number;
};

export function createGate(parts: GateParts): Gate {
  const { deployment, settings, keys, callers, log } = parts;
  const readHeaders = compileHeaders(deployment.http.configurableHeaders);
  const open = createOpenAccess(readHeaders);
  const pass = {
    authorize: async (_: unknown, __: unknown, value: JsonObject) => ({ filter: undefined, value }),
  };
  if (settings.access === 'none') {
    const access = settings.isLoopback ? createOpenAccess(readHeaders, deployment.http.cors) : open;
    return { access, appAccess: access, ...pass };
  }
  if (settings.access !== 'handler') {
    const access = createOwnerAccess(parts, readHeaders);
    return { access, appAccess: access, ...pass };
  }
  const { handlerTimeoutMs: timeoutMs, workers } = parts;
  const calls = createHandlerCalls({ workers, log, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
  const isDisabled = deployment.auth?.disableStudio === true;
  const studio = { isDisabled, isLocal: settings.isStudio, keys, callers, cors: deployment.http.cors };
  const access = createHandlerAccess({ calls, studio, readHeaders });
  return {
    access,
    appAccess: deployment.http.enableCustomRouteAuth ? access : open,
    authorize: (call, event, value) => authorize({ calls, log }, call, event, value),
  };
}

function createOwnerAccess(
  { settings, keys, callers }: GateParts,
  readHeaders: ReadHeaders,
): Access<AgentGrant> {
  if (settings.access === 'gateway' && callers !== undefined)
    return createGatewayAccess({ callers, readHeaders });
  if (keys === undefined) throw new Error(`the access ${settings.access} needs keys`);
  return createKeyAccess({ keys, readHeaders });
}

async function authorize(
  { calls, log }: { readonly calls: HandlerCalls; readonly log: Log },
  { user, signal }: Parameters<Gate['authorize']>[0],
  event: AuthEvent,
  value: JsonObject,
): Promise<Authorization> {
  // The access of every route that asks lets nobody in without one.
  if (user === undefined) throw new DomainError('forbidden', 'Forbidden');
  const [resource = '', action = ''] = event.split(':');
  const sent = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, one ?? null]));
  const params = { resource, action, value: sent, user };
  const decision = await calls.ask('auth.authorize', params, { subject: event, signal });
  if (decision.isAllowed !== true) throw new DomainError('forbidden', 'Forbidden');
  requireStorable(decision.value['metadata'], event, log);
  try {
    const filter = decision.filter === undefined ? undefined : compileFilter(decision.filter);
    if (STORING.has(action) && !('action' in value)) requireOwn(filter, decision.value['metadata']);
    return { filter, value: decision.value };
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    throw reject(log, event, `returned a filter that ${error.message}`);
  }
}

/** Their metadata is stored; that of an update with an `action`, which is a cancellation, is not. */
const STORING: ReadonlySet<string> = new Set(['create', 'update', 'create_run']);

/** Without it, a handler that returns a filter and leaves metadata as it was sent would let callers write in the name of others. */
function requireOwn(filter: Filter | undefined, metadata: unknown): void {
  const key = findForeign(filter, metadata);
  if (key === undefined) return;
  const name = key.length <= 100 ? `metadata.${key}` : 'a member of metadata';
  throw new DomainError('forbidden', `${name} has a value that would not be yours: leave it out`);
}

/** What a handler has put into metadata is stored. */
function requireStorable(metadata: unknown, event: AuthEvent, log: Log): void {
  if (metadata === undefined || metadata === null) return;
  if (typeof metadata !== 'object' || Array.isArray(metadata))
    throw reject(log, event, 'has replaced the metadata by something that is no object');
  if (pathToUnstorable(metadata) !== undefined)
    throw reject(log, event, 'has put a text into the metadata that the database cannot store');
}

function reject(log: Log, event: AuthEvent, reason: string): GivenRefusal {
  return reportHandler(log, event, reason, `The handler of ${event} ${reason}`);
}
