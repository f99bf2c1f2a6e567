// A-05, C-08: values of a wrong type, and the cache lifetime of a callback result.
import { type DocumentRow, refusedRow, takenRow } from './document-script.ts';

const header = (more: object): unknown => ({
  rules: [
    { match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'plaintext', value: 'v', ...more }] },
  ],
});
const rule = (more: object): unknown => ({
  rules: [
    { match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'plaintext', value: 'v' }], ...more },
  ],
});
const callback = (more: object): unknown => ({
  callbacks: [{ match_hosts: ['c.test'], url: 'https://cb.test/', ttl_seconds: 60, ...more }],
});
const VALUE = 'rules.0.headers.0.value string_type';

const jugglingRows: readonly DocumentRow[] = [
  refusedRow('A-05 value-object-with-tostring', header({ value: { toString: 'canary' } }), [VALUE]),
  refusedRow('A-05 value-object-with-length', header({ value: { length: 6, 0: 'c' } }), [VALUE]),
  refusedRow('A-05 value-list', header({ value: ['canary'] }), [VALUE]),
  refusedRow('A-05 value-number', header({ value: 1 }), [VALUE]),
  refusedRow('A-05 value-true', header({ value: true }), [VALUE]),
  refusedRow('A-05 value-null', header({ value: null }), [VALUE]),
  refusedRow('A-05 opaque-value-null', header({ type: 'opaque', value: null }), [VALUE]),
  refusedRow('A-05 opaque-value-list', header({ type: 'opaque', value: ['canary', 'canary'] }), [VALUE]),
  refusedRow('A-05 template-list', header({ type: 'workspace_secret', value: ['{GOOD}'] }), [VALUE]),
  refusedRow('A-05 name-list', header({ name: ['X-Key'] }), ['rules.0.headers.0.name string_type']),
  refusedRow('A-05 name-object', header({ name: { toString: 'X-Key' } }), [
    'rules.0.headers.0.name string_type',
  ]),
  refusedRow('A-05 type-in-capitals', header({ type: 'Opaque' }), [
    'rules.0.headers.0.type union_tag_invalid',
  ]),
  refusedRow('A-05 type-unknown', header({ type: 'secret' }), ['rules.0.headers.0.type union_tag_invalid']),
  refusedRow('A-05 type-list', header({ type: ['opaque'] }), ['rules.0.headers.0.type union_tag_invalid']),
  refusedRow('A-05 type-null', header({ type: null }), ['rules.0.headers.0.type union_tag_invalid']),
  refusedRow('A-05 type-proto', header({ type: '__proto__' }), ['rules.0.headers.0.type union_tag_invalid']),
  refusedRow('A-05 type-constructor', header({ type: 'constructor' }), [
    'rules.0.headers.0.type union_tag_invalid',
  ]),
  refusedRow('A-05 is-set-as-text', header({ type: 'opaque', is_set: 'true' }), [
    'rules.0.headers.0.is_set bool_type',
  ]),
  refusedRow('A-05 is-set-on-plaintext', header({ is_set: true }), [
    'rules.0.headers.0.is_set extra_forbidden',
  ]),
  refusedRow('A-05 header-as-text', rule({ headers: ['X-Key: canary'] }), ['rules.0.headers.0 dict_type']),
  refusedRow('A-05 headers-as-object', rule({ headers: { 'X-Key': 'canary' } }), [
    'rules.0.headers list_type',
  ]),
  refusedRow('A-05 headers-like-a-list', rule({ headers: { 0: {}, length: 1 } }), [
    'rules.0.headers list_type',
  ]),
  refusedRow('A-05 hosts-as-text', rule({ match_hosts: 'api.test' }), ['rules.0.match_hosts list_type']),
  refusedRow('A-05 hosts-nested', rule({ match_hosts: [['api.test']] }), [
    'rules.0.match_hosts.0 string_type',
  ]),
  refusedRow('A-05 hosts-null', rule({ match_hosts: [null] }), ['rules.0.match_hosts.0 string_type']),
  refusedRow('A-05 hosts-number', rule({ match_hosts: [2_130_706_433] }), [
    'rules.0.match_hosts.0 string_type',
  ]),
  refusedRow('A-05 enabled-as-text', rule({ enabled: 'false' }), ['rules.0.enabled bool_type']),
  refusedRow('A-05 enabled-as-number', rule({ enabled: 0 }), ['rules.0.enabled bool_type']),
  refusedRow('A-05 enabled-null', rule({ enabled: null }), ['rules.0.enabled bool_type']),
  refusedRow('A-05 paths-as-text', rule({ match_paths: '/v1' }), ['rules.0.match_paths list_type']),
  refusedRow('A-05 path-as-object', rule({ match_paths: [{ startsWith: '/' }] }), [
    'rules.0.match_paths.0 string_type',
  ]),
  refusedRow('A-05 variables-as-list', rule({ env_vars: ['A=canary'] }), ['rules.0.env_vars dict_type']),
  refusedRow('A-05 variable-as-number', rule({ env_vars: { A: 1 } }), ['rules.0.env_vars.A string_type']),
  refusedRow('A-05 rules-as-object', { rules: { 0: {} } }, ['rules list_type']),
  refusedRow('A-05 rules-null', { rules: null }, ['rules list_type']),
  refusedRow('A-05 rule-as-list', { rules: [[]] }, ['rules.0 dict_type']),
  refusedRow('A-05 access-control-as-list', { access_control: ['api.test'] }, ['access_control dict_type']),
  refusedRow('A-05 access-control-empty', { access_control: {} }, ['access_control value_error']),
  refusedRow('A-05 allow-list-as-text', { access_control: { allow_list: 'api.test' } }, [
    'access_control.allow_list list_type',
  ]),
  refusedRow('A-05 no-proxy-as-text', { no_proxy: 'localhost' }, ['no_proxy list_type']),
  refusedRow('A-05 url-as-object', callback({ url: { href: 'https://cb.test/' } }), [
    'callbacks.0.url string_type',
  ]),
  refusedRow('A-05 url-as-list', callback({ url: ['https://cb.test/'] }), ['callbacks.0.url string_type']),
];

const elsewhere = (
  id: DocumentRow['id'],
  route: 'workspace_secrets' | 'sandboxes',
  document: unknown,
  issues: readonly string[],
): DocumentRow => ({
  id,
  script: { text: [JSON.stringify(document)], route },
  expect: { atPut: issues },
});
const otherRouteRows: readonly DocumentRow[] = [
  elsewhere('A-05 secret-as-object', 'workspace_secrets', { A: { toString: 'canary' } }, ['A string_type']),
  elsewhere('A-05 secret-as-list', 'workspace_secrets', { A: ['canary'] }, ['A string_type']),
  elsewhere('A-05 secret-as-number', 'workspace_secrets', [{ key: 'A', value: 1 }], ['0.value string_type']),
  elsewhere(
    'A-05 secret-key-as-list',
    'workspace_secrets',
    [{ key: ['A'], value: 'canary' }],
    ['0.key string_type'],
  ),
  elsewhere('A-05 secrets-as-text', 'workspace_secrets', 'canary', ['dict_type']),
  elsewhere('A-05 secrets-null', 'workspace_secrets', null, ['dict_type']),
  elsewhere('A-05 secrets-nested-list', 'workspace_secrets', [['A', 'canary']], ['0 dict_type']),
  elsewhere('A-05 sandbox-id-as-list', 'sandboxes', { id: ['a'] }, ['id string_type']),
  elsewhere('A-05 sandbox-id-as-number', 'sandboxes', { id: 1 }, ['id string_type']),
  elsewhere('A-05 sandbox-token-as-object', 'sandboxes', { token: { length: 40 } }, ['token string_type']),
  elsewhere('A-05 sandbox-limit-as-text', 'sandboxes', { limits: { max_connections: '10' } }, [
    'limits.max_connections int_type',
  ]),
  elsewhere('A-05 sandbox-as-list', 'sandboxes', [], ['dict_type']),
];

const TTL = 'callbacks.0.ttl_seconds';
const ttl = (literal: string): string =>
  `{"callbacks":[{"match_hosts":["c.test"],"url":"https://cb.test/","ttl_seconds":${literal}}]}`;
const ttlRows: readonly DocumentRow[] = [
  refusedRow('C-08 59', ttl('59'), [`${TTL} greater_than_equal`]),
  refusedRow('C-08 3601', ttl('3601'), [`${TTL} less_than_equal`]),
  refusedRow('C-08 zero', ttl('0'), [`${TTL} greater_than_equal`]),
  refusedRow('C-08 minus-zero', ttl('-0'), [`${TTL} greater_than_equal`]),
  refusedRow('C-08 negative', ttl('-60'), [`${TTL} greater_than_equal`]),
  refusedRow('C-08 as-text', ttl('"60"'), [`${TTL} int_type`]),
  refusedRow('C-08 as-list', ttl('[60]'), [`${TTL} int_type`]),
  refusedRow('C-08 as-true', ttl('true'), [`${TTL} int_type`]),
  refusedRow('C-08 null', ttl('null'), [`${TTL} int_type`]),
  refusedRow('C-08 half-a-second', ttl('60.5'), [`${TTL} int_type`]),
  refusedRow('C-08 nearly-sixty', ttl('59.999999999999'), [`${TTL} int_type`]),
  refusedRow('C-08 infinite', ttl('1e400'), [`${TTL} int_type`]),
  refusedRow('C-08 minus-infinite', ttl('-1e400'), [`${TTL} int_type`]),
  refusedRow('C-08 beyond-whole-numbers', ttl('9007199254740993'), [
    `${TTL} less_than_equal`,
    `${TTL} less_than_equal`,
  ]),
  refusedRow('C-08 vanishing', ttl('1e-400'), [`${TTL} greater_than_equal`]),
  refusedRow('C-08 not-a-number', ttl('NaN'), ['json_invalid']),
  refusedRow('C-08 infinity-by-name', ttl('Infinity'), ['json_invalid']),
  refusedRow('C-08 absent', '{"callbacks":[{"match_hosts":["c.test"],"url":"https://cb.test/"}]}', [
    `${TTL} missing`,
  ]),
  takenRow('C-08 1e3', ttl('1e3')),
  takenRow('C-08 60-point-0', ttl('60.0')),
  takenRow('C-08 3600', ttl('3600')),
];

export const typeRows: readonly DocumentRow[] = [...jugglingRows, ...otherRouteRows, ...ttlRows];
