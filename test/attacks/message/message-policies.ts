// What is in force while a `message` row is played, by name. One sidecar serves all rows of a policy. Add one here for rows that
// need other rules; `injected` is what {AUTH} stands for in its rows. It knows no row.

export const SECRET = 'sesame>>open??now~~42~';

export type MessagePolicy = {
  readonly document: unknown;
  /** The lines that are set last on a request to api.test that its rules cover. */
  readonly injected: readonly string[];
};

type Fields = Readonly<Record<string, unknown>>;

function bearer(more: Fields = {}, name = 'Authorization'): Fields {
  const headers = [{ name, type: 'workspace_secret', value: 'Bearer {TOKEN}' }];
  return { name: 'api', match_hosts: ['api.test'], headers, ...more };
}

const AUTHORIZATION = `Authorization: Bearer ${SECRET}`;

/** Gives what it matches `X-Scope: …` and nothing else. */
function scoped(scope: string, path: string): Fields {
  const headers = [{ name: 'X-Scope', type: 'plaintext', value: scope }];
  return { name: scope, match_hosts: ['api.test'], match_paths: [path], headers };
}

export type PolicyName =
  | 'bearer'
  | 'api_key'
  | 'paths'
  | 'stars'
  | 'narrow_first'
  | 'broad_first'
  | 'two_paths'
  | 'callback_behind';

export const messagePolicies: Readonly<Record<PolicyName, MessagePolicy>> = {
  /** One rule, for every path of api.test. */
  bearer: { document: { rules: [bearer()] }, injected: [AUTHORIZATION] },
  /** A name with hyphens, which some origins cannot tell from underscores. */
  api_key: { document: { rules: [bearer({}, 'X-Api-Key')] }, injected: [`X-Api-Key: Bearer ${SECRET}`] },
  /** Rules that tell paths apart. */
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
  /** `/admin/` has a lesser credential than all the rest. */
  narrow_first: { document: { rules: [scoped('narrow', '/admin/*'), bearer()] }, injected: [AUTHORIZATION] },
  /** The first rule matches whatever the second would. */
  broad_first: { document: { rules: [bearer(), scoped('never', '/admin/*')] }, injected: [AUTHORIZATION] },
  /** Two rules with paths, and paths that neither of them knows. */
  two_paths: {
    document: { rules: [scoped('public', '/public/*'), bearer({ match_paths: ['/v1/*'] })] },
    injected: [AUTHORIZATION],
  },
  /** A callback that nobody answers: a rule on the host shuts it out, whatever the path. */
  callback_behind: {
    document: {
      rules: [bearer({ match_paths: ['/v1/*'] })],
      callbacks: [{ match_hosts: ['api.test'], url: 'http://127.0.0.1:9/headers', ttl_seconds: 60 }],
    },
    injected: [AUTHORIZATION],
  },
};
