// What builds may reach besides the registries, checked when a program starts: by the rules of the sidecar, which would refuse the whole
// list for one entry when the first build begins.
import type { Issue } from '../../base/schema.ts';

const KEY = ['runner', 'builds', 'allow_hosts'] as const;
const VARIABLE = 'SALLYPORT_PLATFORM_RUNNER_BUILDS_ALLOW_HOSTS';

/** An issue names the variable where that has set the list. */
export async function findBuildHostIssues(
  hosts: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<readonly Issue[]> {
  if (hosts.length === 0) return [];
  const { parseProxyConfig } = await import('../../policy/document/proxy-config.ts');
  const parsed = parseProxyConfig({ access_control: { allow_list: hosts } });
  if (parsed.ok) return [];
  const prefix = env[VARIABLE] ? [VARIABLE] : KEY;
  return parsed.issues.map((issue) => ({ ...issue, loc: [...prefix, ...issue.loc.slice(2)] }));
}
