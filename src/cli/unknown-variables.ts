// Variables named like ours that nothing reads: a setting with a slip in its name would be silently without effect, and
// a limit that an operator believes in would not be there. It sees names and judges no value.
import { configVariables } from '../sidecar/config.ts';
import { operatorVariables } from '../sidecar/secret-environment.ts';

/** Read from the environment beside the settings. A name that ends with `_` stands for all that begin with it. */
const furtherVariables: readonly string[] = [
  'SALLYPORT_SECRET_',
  'SALLYPORT_HANDED_SECRETS',
  'SALLYPORT_OWN_THREADPOOL',
  ...operatorVariables,
];

/** Of the platform, which knows its own better. */
const platformVariables: readonly string[] = ['SALLYPORT_PLATFORM_', 'SALLYPORT_BOOTSTRAP_API_KEY'];

/** As many letters too many, missing or wrong are a slip. */
const MAX_SLIPS = 2;
const OURS = 'SALLYPORT_';

const ours: readonly string[] = [...configVariables().map(({ name }) => name), ...furtherVariables];

export function isKnownVariable(
  name: string,
  known: readonly string[] = [...ours, ...platformVariables],
): boolean {
  return known.some((one) => (one.endsWith('_') ? name.startsWith(one) : name === one));
}

/**
 * One sentence for each. What is set to nothing is left out: for a setting, too, that means not set. `others` are the
 * variables of another program than the proxy.
 */
export function unknownVariableWarnings(
  env: NodeJS.ProcessEnv,
  others: readonly string[] = platformVariables,
): string[] {
  const known = [...ours, ...others];
  const services = Object.keys(env).filter((name) => name.endsWith('_SERVICE_HOST'));
  const unknown = Object.keys(env).filter(
    (name) =>
      name.startsWith(OURS) &&
      env[name] !== '' &&
      !isKnownVariable(name, known) &&
      !isOfService(name, services),
  );
  return unknown.map((name) => {
    const near = nearest(name, known);
    return `${name} is not a setting: ${near === undefined ? 'it has no effect' : `did you mean ${near}?`}`;
  });
}

/** Kubernetes gives every pod the address of each service, under that service's name. */
function isOfService(name: string, services: readonly string[]): boolean {
  const prefixes = services.map((host) => host.slice(0, -'SERVICE_HOST'.length));
  return prefixes.some((prefix) => name.startsWith(`${prefix}SERVICE_`) || name.startsWith(`${prefix}PORT`));
}

function nearest(name: string, known: readonly string[]): string | undefined {
  const slips = known.map((one) => ({ one, count: slipsTo(one, name) }));
  const [closest] = slips.filter(({ count }) => count <= MAX_SLIPS).toSorted((a, b) => a.count - b.count);
  if (closest) return closest.one.endsWith('_') ? `${closest.one}<NAME>` : closest.one;
  // The group was left out: DRAIN_MS without TIMEOUTS.
  return known.find((one) => one.endsWith(name.slice(OURS.length - 1)));
}

/** Letters to add, leave out or change; for a name that stands for many, up to its length. */
function slipsTo(one: string, name: string): number {
  if (!one.endsWith('_')) return editDistance(one, name);
  const starts = [-1, 0, 1].map((more) => name.slice(0, one.length + more));
  return Math.min(...starts.filter((start) => start.endsWith('_')).map((start) => editDistance(one, start)));
}

/** Levenshtein's, a row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const changed = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
