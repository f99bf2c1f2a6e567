// Says where a key belongs that its document does not have: a key of the config in a proxy_config, the reverse, and a
// dotted key as docs/configuration.md writes it.
import type { Loc } from '../../base/schema.ts';
import { configVariables } from '../../sidecar/config.ts';
import { type Recognized, proxyConfigKeys } from './proxy-config-file.ts';

type Unknown = { readonly loc: Loc; readonly msg: string; readonly type?: string };

const configKeys: ReadonlySet<string> = new Set(configVariables().map(({ key }) => key));
const topKeys: ReadonlySet<string> = new Set([...configKeys].map((key) => key.split('.')[0] ?? key));

/** The issues of a document of this kind; those of an unknown key at its top say where the key belongs, if that is known. */
export function placeUnknownKeys<T extends Unknown>(kind: Recognized['kind'], issues: readonly T[]): T[] {
  return issues.map((issue) => {
    const [key, ...below] = issue.loc;
    if (issue.type !== 'extra_forbidden' || typeof key !== 'string' || below.length > 0) return issue;
    const msg = kind === 'config' ? placeInConfig(key) : placeInProxyConfig(key);
    return msg === undefined ? issue : { ...issue, msg };
  });
}

function placeInConfig(key: string): string | undefined {
  if (proxyConfigKeys.has(key))
    return 'This key belongs in the proxy_config, a file of its own: give that file as --proxy-config';
  const [group, name] = key.split('.');
  if (name === undefined || !configKeys.has(key)) return undefined;
  return `Write a dot as an object, as in {"${group}": {"${name}": ...}}`;
}

function placeInProxyConfig(key: string): string | undefined {
  if (!topKeys.has(key.split('.')[0] ?? key)) return undefined;
  return 'This key belongs in the config of the operator, a file of its own: give that file as --config';
}
