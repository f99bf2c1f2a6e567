// Where a build may connect to: the registries, what the operator allows besides, and nothing else. Which addresses these names may
// have is checked by the sidecar, by its own settings for private ones.
import type { WorkloadNetwork, WorkloadRefusal } from '../../../workload/workload.ts';

/** `allowed`: destinations of an access control. They are tunnelled: a build needs no certificate of ours. */
export function networkOfBuilds(workspaceId: string, allowed: readonly string[]): WorkloadNetwork {
  const document = { access_control: { allow_list: allowed }, no_proxy: allowed };
  return { group: `build-${workspaceId}`, policy: { version: 1, document, secrets: {} } };
}

/** A line of the log of the build. */
export function describeRefusal({ authority, method, reason, cause }: WorkloadRefusal): string {
  const what = [method, authority].filter(Boolean).join(' ') || 'a request';
  const why = cause === undefined ? reason : `${reason} (${cause})`;
  const cure =
    reason === 'access_denied'
      ? ': builds reach the registries and the hosts of runner.builds.allow_hosts alone'
      : '';
  return `refused by the network of builds: ${what}: ${why}${cure}`;
}
