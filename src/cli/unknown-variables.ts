// Finds variables that are named like settings and that nothing reads: a misspelt setting would silently have no effect,
// and a limit that the operator relies on would be missing. Looks at names only.
import { InputError } from '../base/input-error.ts';
import { configVariables } from '../sidecar/config.ts';
import { operatorVariables } from '../sidecar/secret-environment.ts';
import { editDistance, maxTypos } from './command/nearest.ts';

/** Of `deploy`. A shell from which it is called may start other commands too. */
export const deployVariables: readonly string[] = [
  'SALLYPORT_API_URL',
  'SALLYPORT_API_KEY',
  'SALLYPORT_API_KEY_FILE',
  'SALLYPORT_API_WORKSPACE',
];

/** Variables that are no settings. A name that ends with `_` stands for all names that begin with it. */
const furtherVariables: readonly string[] = [
  'SALLYPORT_SECRET_',
  'SALLYPORT_HANDED_SECRETS',
  'SALLYPORT_OWN_THREADPOOL',
  'SALLYPORT_LAUNCHER_PID',
  'SALLYPORT_PARENT_INPUT',
  ...deployVariables,
  ...operatorVariables,
];

/** Variables of the platform and of the agent server, which check their own. */
const platformVariables: readonly string[] = [
  'SALLYPORT_PLATFORM_',
  'SALLYPORT_AGENT_',
  'SALLYPORT_BOOTSTRAP_API_KEY',
];

const OURS = 'SALLYPORT_';

const ours: readonly string[] = [...configVariables().map(({ name }) => name), ...furtherVariables];

export function isKnownVariable(
  name: string,
  known: readonly string[] = [...ours, ...platformVariables],
): boolean {
  return known.some((one) => (one.endsWith('_') ? name.startsWith(one) : name === one));
}

/**
 * One sentence for each. An empty variable is ignored: for a setting, too, it means not set. `others`: variables of
 * another program than the proxy.
 */
export function unknownVariableWarnings(
  env: NodeJS.ProcessEnv,
  others: readonly string[] = platformVariables,
): string[] {
  const known = [...ours, ...others];
  return unknownVariables(env, known).map((name) => {
    const near = nearest(name, known);
    return `${name} is not a setting: ${near === undefined ? 'it has no effect' : `did you mean ${near}?`}`;
  });
}

function unknownVariables(env: NodeJS.ProcessEnv, known: readonly string[]): readonly string[] {
  const services = Object.keys(env).filter((name) => name.endsWith('_SERVICE_HOST'));
  return Object.keys(env).filter(
    (name) =>
      name.startsWith(OURS) &&
      env[name] !== '' &&
      !isKnownVariable(name, known) &&
      !isOfService(name, services),
  );
}

/**
 * Throws an InputError for an unknown variable that is named like a setting of who may use the proxy: with such a warning
 * only, the proxy would run without the protection that the operator believes is there.
 */
export function refuseUnknownGuards(env: NodeJS.ProcessEnv): void {
  const [name] = unknownVariables(env, [...ours, ...platformVariables]).filter((one) => GUARD.test(one));
  if (name === undefined) return;
  const near = nearest(name, ours);
  const advice = near === undefined ? '' : `set ${near} instead, or `;
  throw new InputError(
    `${name} is not a setting, and names like it decide who may use the proxy: ${advice}unset it`,
  );
}

const GUARD = /^SALLYPORT_(?:AUTH|ALLOW)/;

/** Kubernetes sets variables with the address of each service, named after the service, in every pod. */
function isOfService(name: string, services: readonly string[]): boolean {
  const prefixes = services.map((host) => host.slice(0, -'SERVICE_HOST'.length));
  return prefixes.some((prefix) => name.startsWith(`${prefix}SERVICE_`) || name.startsWith(`${prefix}PORT`));
}

function nearest(name: string, known: readonly string[]): string | undefined {
  const typos = known.map((one) => ({ one, count: typosIn(name, one) }));
  const [closest] = typos.filter(({ count }) => count <= maxTypos).toSorted((a, b) => a.count - b.count);
  if (closest) return closest.one.endsWith('_') ? `${closest.one}<NAME>` : closest.one;
  // The end is missing: AUTH_TOKEN without FILE.
  const longer = known.find((one) => one.startsWith(`${name}_`) && !one.endsWith('_'));
  if (longer !== undefined) return longer;
  // The group is missing: DRAIN_MS without TIMEOUTS.
  return known.find((one) => one.endsWith(name.slice(OURS.length - 1)));
}

/** Letters to add, remove or change; for a name that stands for many, within its length. */
function typosIn(name: string, one: string): number {
  if (!one.endsWith('_')) return editDistance(one, name);
  const starts = [-1, 0, 1].map((more) => name.slice(0, one.length + more));
  return Math.min(...starts.filter((start) => start.endsWith('_')).map((start) => editDistance(one, start)));
}
