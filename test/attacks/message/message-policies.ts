// The policies of the `message` rows, by name. One sidecar serves all rows of a policy. Rows that need other rules get a new
// policy here; `injected` is the value of {AUTH} in its rows. Independent of the rows.

export const SECRET = 'sesame>>open??now~~42~';

export type MessagePolicy = {
  readonly document: unknown;
  /** The injected lines of a request to api.test that its rules match. */
  readonly injected: readonly string[];
};

type Fields = Readonly<Record<string, unknown>>;

function bearer(more: Fields = {}, name = 'Authorization'): Fields {
  const headers = [{ name, type: 'workspace_secret', value: 'Bearer {TOKEN}' }];
  return { name: 'api', match_hosts: ['api.test'], headers, ...more };
}

const AUTHORIZATION = `Authorization: Bearer ${SECRET}`;

/** A rule that injects only `X-Scope: …`. */
function scoped(scope: string, path: string): Fields {
  const headers = [{ name: 'X-Scope', type: 'plaintext', value: scope }];
  return { name: scope, match_hosts: ['api.test'], match_paths: [path], headers };
}

export type PolicyName =
  | 'bearer'
  | 'api_key'
  | 'paths'
  | 'stars'
  | 'japanese'
  | 'inner_star'
  | 'narrow_first'
  | 'broad_first'
  | 'two_paths'
  | 'callback_after_rule';

export const messagePolicies: Readonly<Record<PolicyName, MessagePolicy>> = {
  /** One rule, for every path of api.test. */
  bearer: { document: { rules: [bearer()] }, injected: [AUTHORIZATION] },
  /** A name with hyphens, which some origins do not distinguish from underscores. */
  api_key: { document: { rules: [bearer({}, 'X-Api-Key')] }, injected: [`X-Api-Key: Bearer ${SECRET}`] },
  /** A rule with a path. */
  paths: {
    document: { rules: [bearer({ match_paths: ['/v1/*'] })] },
    injected: [AUTHORIZATION],
  },
  /** Every kind of star, and none. */
  stars: {
    document: {
      rules: [bearer({ match_paths: ['/repos/*/contents', '/v1*', '/exact', '/caf%C3%A9/*', '/deep/**'] })],
    },
    injected: [AUTHORIZATION],
  },
  /** Names as Japanese file systems have them: full-width, and half-width katakana, which NFKC changes. */
  japanese: {
    document: { rules: [bearer({ match_paths: [encodeURI('/資料/*'), encodeURI('/\uff83\uff9e/*')] })] },
    injected: [AUTHORIZATION],
  },
  /** One segment with any name gets a weaker credential than all other paths. */
  inner_star: {
    document: { rules: [scoped('narrow', '/repos/*/contents'), bearer()] },
    injected: [AUTHORIZATION],
  },
  /** `/admin/` gets a weaker credential than all other paths. */
  narrow_first: { document: { rules: [scoped('narrow', '/admin/*'), bearer()] }, injected: [AUTHORIZATION] },
  /** The first rule matches everything that the second matches. */
  broad_first: { document: { rules: [bearer(), scoped('never', '/admin/*')] }, injected: [AUTHORIZATION] },
  /** Two rules with paths, so that some paths match neither. */
  two_paths: {
    document: { rules: [scoped('public', '/public/*'), bearer({ match_paths: ['/v1/*'] })] },
    injected: [AUTHORIZATION],
  },
  /** A callback without a listener: a rule for the host takes precedence, whatever the path. */
  callback_after_rule: {
    document: {
      rules: [bearer({ match_paths: ['/v1/*'] })],
      callbacks: [{ match_hosts: ['api.test'], url: 'http://127.0.0.1:9/headers', ttl_seconds: 60 }],
    },
    injected: [AUTHORIZATION],
  },
};
