// The documents of the canary test: valid ones, and ones with a secret in every field.
import type { CanaryPeers } from './canary-peers.ts';
import type { CanaryValues } from './canary-values.ts';

/** Not a secret: it shows that responses and records are searched. */
export const VISIBLE = 'visible-plaintext-value';

/** The operator's document, for `default`. */
export function operatorsDocument(values: CanaryValues, { callback }: CanaryPeers): object {
  const failing = ['lost.test', 'untrusted.test', 'refused.test'];
  return {
    rules: [
      bearer('file', ['file.test'], 'Bearer {FILE_SECRET}'),
      rule('variable', ['variable.test'], [workspace('X-Api-Key', '{VARIABLE_SECRET}')]),
      rule('opaque', ['opaque.test', ...failing], [opaque('Authorization', `Bearer ${values.opaque}`)]),
      rule('plain', ['plain.test'], [{ name: 'X-Plain', type: 'plaintext', value: VISIBLE }]),
    ],
    callbacks: [callbackOf(callback.url, values)],
  };
}

/** A tenant's document, for a sandbox that is created via the admin API. */
export function tenantsDocument(values: CanaryValues, { callback }: CanaryPeers): object {
  return {
    rules: [
      bearer('admin', ['admin.test'], 'Bearer {ADMIN_SECRET}'),
      rule(
        'opaque',
        ['opaque.test'],
        [opaque('Authorization', values.opaque), opaque('X-Other', values.opaque)],
      ),
    ],
    callbacks: [callbackOf(callback.url, values)],
  };
}

/** The secret in every field of every entry, as text and inside a list. Rejected as a whole. */
export function secretEverywhere(secret: string): readonly object[] {
  const rules = withSecretInEach(ruleTemplate, secret);
  const callbacks = withSecretInEach(callbackTemplate, secret);
  const error = { no_proxy: [`${secret}\n`] };
  return [
    ...[secret, [secret]].map((value) => ({ rules: value, callbacks: value, access_control: value })),
    { ...error, rules, callbacks },
    { ...error, access_control: { allow_list: [secret], deny_list: [secret] } },
    { ...error, rules: [ruleTemplate], access_control: { deny_list: [secret] } },
    {
      ...error,
      rules: [
        { ...ruleTemplate, name: secret },
        { ...ruleTemplate, name: secret, no_proxy: ['h.test'] },
      ],
    },
    { rules: [bearer(secret, ['h.test'], `${secret} {MISSING} ${secret}`)] },
    { rules: [bearer(secret, ['h.test'], `{${secret}}`)] },
  ];
}

/** Invalid bodies for `POST /v1/sandboxes`. */
export function sandboxesWith(secret: string): readonly object[] {
  const fields = ['id', 'listen', 'token', 'limits', 'proxy_config', 'workspace_secrets'];
  return [
    ...fields.map((field) => ({ [field]: secret })),
    { limits: { max_connections: secret } },
    { token: `${secret}\n`, workspace_secrets: { [secret]: secret } },
    { workspace_secrets: [{ key: secret, value: secret }] },
    { id: 'default', token: secret },
  ];
}

export function secretChangesWith(secret: string): readonly unknown[] {
  return [
    secret,
    [secret],
    { [secret]: 'NAME' },
    { NAME: [secret] },
    [{ key: secret, value: 'NAME' }],
    [{ key: 'NAME', value: secret, more: secret }],
    [
      { key: 'NAME', value: secret },
      { key: 'NAME', value: secret },
    ],
  ];
}

function bearer(name: string, hosts: readonly string[], value: string): object {
  return rule(name, hosts, [workspace('Authorization', value)]);
}

function rule(name: string, match_hosts: readonly string[], headers: readonly object[]): object {
  return { name, match_hosts, headers };
}

function workspace(name: string, value: string): object {
  return { name, type: 'workspace_secret', value };
}

function opaque(name: string, value: string): object {
  return { name, type: 'opaque', value };
}

function callbackOf(url: string, { callbackHeader }: CanaryValues): object {
  const match_hosts = ['called.test', 'uncalled.test'];
  return { match_hosts, url, request_headers: [opaque('X-Shared', callbackHeader)], ttl_seconds: 60 };
}

const ruleTemplate: object = {
  name: 'name',
  description: 'description',
  enabled: true,
  env_vars: { A: 'a' },
  match_hosts: ['h.test'],
  match_paths: ['/v1/*'],
  headers: [opaque('X-A', 'a'), workspace('X-B', '{B}'), { name: 'X-C', type: 'plaintext', value: 'c' }],
  no_proxy: ['n.test'],
};
const callbackTemplate: object = {
  name: 'name',
  description: 'description',
  enabled: true,
  match_hosts: ['c.test'],
  url: 'https://c.test/',
  request_headers: [opaque('X-A', 'a'), { name: 'X-C', type: 'plaintext', value: 'c' }],
  ttl_seconds: 60,
};

/** One copy for each value anywhere in `template`, with that value replaced by the secret. */
function withSecretInEach(template: unknown, secret: string): readonly unknown[] {
  if (typeof template !== 'object' || template === null) return [[secret], `${secret}\n`];
  return Object.entries(template).flatMap(([key, value]) => [
    ...replaced(template, key, [secret]),
    ...replaced(template, key, withSecretInEach(value, secret)),
  ]);
}

function replaced(template: object, key: string, values: readonly unknown[]): readonly unknown[] {
  return values.map((value) =>
    Array.isArray(template) ? template.with(Number(key), value) : { ...template, [key]: value },
  );
}
