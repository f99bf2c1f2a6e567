// The hosts of the origin with the credential that each of them expects, and the rules by which the proxy injects it.
// The values are random: what a client might have from elsewhere is never taken for them.
import { randomBytes } from 'node:crypto';

export const ORIGIN_ADDRESS = '10.77.0.1';

/** The name of the secret in braces. */
const hosts: Readonly<Record<string, readonly [header: string, value: string]>> = {
  'api.test': ['Authorization', 'Bearer {API_TOKEN}'],
  'grpc.test': ['Authorization', 'Bearer {API_TOKEN}'],
  'ws.test': ['Authorization', 'Bearer {API_TOKEN}'],
  'git.test': ['Authorization', 'Basic {LOGIN}'],
  'pypi.test': ['Authorization', 'Basic {LOGIN}'],
  'goproxy.test': ['Authorization', 'Basic {LOGIN}'],
  'maven.test': ['Authorization', 'Basic {LOGIN}'],
  'apt.test': ['Authorization', 'Basic {LOGIN}'],
  'npm.test': ['Authorization', 'Bearer {NPM_TOKEN}'],
  'crates.test': ['Authorization', '{CRATES_TOKEN}'],
  // Signed clients send an Authorization of their own.
  's3.test': ['X-Object-Key', '{API_TOKEN}'],
  'github.test': ['Authorization', 'token {API_TOKEN}'],
};

export const hostNames: readonly string[] = Object.keys(hosts);

export type Credentials = {
  /** As environment lines of `--secrets-file`. */
  readonly secretLines: string;
  /** The header and its value for a host of the origin, in lower case. */
  expected(host: string): readonly [header: string, value: string] | undefined;
};

export function createCredentials(): Credentials {
  const random = (): string => randomBytes(18).toString('base64url');
  const secrets: Readonly<Record<string, string>> = {
    API_TOKEN: random(),
    NPM_TOKEN: random(),
    CRATES_TOKEN: random(),
    LOGIN: Buffer.from(`agent:${random()}`).toString('base64'),
  };
  return {
    secretLines: Object.entries(secrets)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
    expected(host) {
      const entry = hosts[host];
      if (entry === undefined) return undefined;
      const [header, value] = entry;
      return [header.toLowerCase(), value.replace(/\{(\w+)\}/, (_, name: string) => secrets[name] ?? '')];
    },
  };
}

/** The placeholders without which these clients do not start. They are no secrets. */
const placeholders: Readonly<Record<string, string>> = {
  OPENAI_API_KEY: 'placeholder',
  ANTHROPIC_API_KEY: 'placeholder',
  GEMINI_API_KEY: 'placeholder',
  GH_ENTERPRISE_TOKEN: 'placeholder',
};

/** The proxy_config: one rule for each header and value. */
export function createProxyConfig(): unknown {
  const byHeader = Map.groupBy(Object.entries(hosts), ([, [header, value]]) => `${header}: ${value}`);
  const rules = [...byHeader.values()].map((entries, index) => {
    const [name, value] = entries[0]?.[1] ?? ['', ''];
    return {
      name: `rule-${index}`,
      match_hosts: entries.map(([host]) => host),
      headers: [{ name, type: 'workspace_secret', value }],
      ...(index === 0 && { env_vars: placeholders }),
    };
  });
  return { rules };
}
