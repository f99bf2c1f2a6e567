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

export type PolicyName = 'bearer' | 'api_key' | 'paths';

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
};
