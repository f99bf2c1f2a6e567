// Which header fields of a request its runs find in `configurable`: those whose names begin with `x-`, and `user-agent`, or those
// that the configuration names. Credentials of the server itself are never among them, unless they are named exactly. Pure.
import type { RequestHead } from '../../../base/http/request-head.ts';
import type { HeaderPatterns } from '../configuration/deployment.ts';
import { isGatewayField } from './gateway-callers.ts';

const DEFAULT = ['x-*', 'user-agent'];
/** No pattern with `*` includes them. */
const CREDENTIALS = new Set([
  ...['x-api-key', 'x-tenant-id', 'x-service-key'],
  ...['authorization', 'proxy-authorization', 'cookie'],
]);

export type ReadHeaders = (head: Pick<RequestHead, 'names' | 'field'>) => Readonly<Record<string, string>>;

/** `excludes` wins over `includes`. */
export function compileHeaders({ includes, excludes }: HeaderPatterns): ReadHeaders {
  const isIncluded = compile(includes ?? DEFAULT);
  const isExcluded = compile(excludes);
  const isNamed = new Set(includes);
  // Names that graphs and their library read, such as `thread_id`, have underscores.
  const isReserved = (name: string): boolean => CREDENTIALS.has(name) || name.includes('_');
  const isPassed = (name: string): boolean =>
    isIncluded(name) &&
    !isExcluded(name) &&
    !isGatewayField(name) &&
    (!isReserved(name) || isNamed.has(name));
  return ({ names, field }) =>
    Object.fromEntries(names.filter(isPassed).map((name) => [name, field(name) ?? '']));
}

/** Each `*` stands for any text. */
function compile(patterns: readonly string[]): (name: string) => boolean {
  const all = patterns.map((pattern) => {
    const parts = pattern.toLowerCase().split(/\*+/);
    return (name: string): boolean => matches(name, parts);
  });
  return (name) => all.some((one) => one(name));
}

/** Part after part, each at its first place: without a way back, no name takes long. */
function matches(name: string, parts: readonly string[]): boolean {
  const [first = '', ...others] = parts;
  const last = others.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
