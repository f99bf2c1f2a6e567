// The proxy_configs of the stage `connect`, by name, as a tenant writes them.

const bearer: readonly object[] = [
  { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' },
];
const ruleFor = (host: string, more: object = {}): object => ({
  name: host,
  match_hosts: [host],
  headers: bearer,
  ...more,
});

const base = {
  rules: [
    'api.test',
    '*.wild.test',
    'xn--bcher-kva.test',
    'under_score.test',
    '8.8.1.9',
    '[2606:4700::1111]',
    'narrow.test:8443',
    'clear.test',
    'intra.test',
    '*.intra.test',
    'meta.test',
  ].map((host) => ruleFor(host)),
  callbacks: [{ match_hosts: ['back.test'], url: 'http://127.0.0.1:9/headers', ttl_seconds: 60 }],
};

export type PolicyName = 'base' | 'paths' | 'denied' | 'listed' | 'no_proxy' | 'disabled' | 'empty' | 'own';

export const connectPolicies: Readonly<Record<PolicyName, object>> = {
  base,
  /** A rule with paths: a request that does not match is sent without the credential. */
  paths: { rules: [ruleFor('api.test', { match_paths: ['/v1/*'] })] },
  denied: {
    ...base,
    access_control: {
      deny_list: ['evil.test', '*.evil.test', 'other.test:8443', '8.8.2.0/24', '2606:4700::/32'],
    },
    rules: base.rules.slice(0, 2),
  },
  listed: {
    rules: base.rules.slice(0, 1),
    access_control: { allow_list: ['api.test', 'other.test', 'other.test:8443', '*.sub.test', '8.8.3.0/24'] },
  },
  no_proxy: { rules: base.rules.slice(0, 2), no_proxy: ['api.test', '*.wild.test'] },
  disabled: { rules: [ruleFor('api.test', { enabled: false })] },
  empty: {},
  /** Rules for own listeners, or for names that resolve to them. */
  own: {
    rules: ['self.test', 'mapped.test', 'late.test', 'localhost', '127.0.0.1'].map((host) => ruleFor(host)),
  },
};
