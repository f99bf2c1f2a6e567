import { expect, it } from 'vitest';
import { placeUnknownKeys } from '../../../src/cli/rules/misplaced-keys.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import { parseConfig } from '../../../src/sidecar/config.ts';

function messages(kind: 'config' | 'proxy_config', document: unknown): readonly string[] {
  const parsed = kind === 'config' ? parseConfig(document, {}) : parseProxyConfig(document);
  if (parsed.ok) throw new Error('the document is valid');
  return placeUnknownKeys(kind, parsed.issues).map(({ loc, msg }) => `${loc.join('/')}: ${msg}`);
}

const IN_PROXY_CONFIG =
  'This key belongs in the proxy_config, a file of its own: give that file as --proxy-config';
const IN_CONFIG =
  'This key belongs in the config of the operator, a file of its own: give that file as --config';

it.each([
  ['config', { rules: [], callbacks: [] }, [`rules: ${IN_PROXY_CONFIG}`, `callbacks: ${IN_PROXY_CONFIG}`]],
  ['proxy_config', { rules: [], listen: '127.0.0.1:1' }, [`listen: ${IN_CONFIG}`]],
  ['proxy_config', { egress: { allow_private: [] } }, [`egress: ${IN_CONFIG}`]],
  [
    'config',
    { 'egress.allow_private': [] },
    ['egress.allow_private: Write a dot as an object, as in {"egress": {"allow_private": ...}}'],
  ],
] as const)('a %s with %j names the place of each key', (kind, document, expected) =>
  expect(messages(kind, document)).toEqual(expected),
);

it.each([
  ['config', { listne: 'x' }, 'listne'],
  ['config', { 'egress.allow': [] }, 'egress.allow'],
  ['config', { log: { rules: true } }, 'log/rules'],
  ['proxy_config', { rulse: [] }, 'rulse'],
] as const)('a %s with %j has an unknown key', (kind, document, loc) =>
  expect(messages(kind, document)).toEqual([`${loc}: Unknown key: remove it, or correct its spelling`]),
);
