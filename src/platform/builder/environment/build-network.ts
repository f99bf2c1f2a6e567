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
  return `refused by the network of builds: ${what}: ${why}${cureOf(reason, cause)}`;
}

/** Classes of addresses that a setting may allow. */
const ALLOWABLE = ['private', 'cgnat', 'reserved', 'loopback'];

function cureOf(reason: string, cause: string | undefined): string {
  if (reason === 'access_denied')
    return ': builds reach the registries and the hosts of runner.builds.allow_hosts alone';
  if (reason === 'address_denied' && cause !== undefined && ALLOWABLE.includes(cause))
    return ': the name has an address that is not public: list it in egress.allow_private of the file that runner.sidecar_config names';
  return '';
}

/** Of one build: a package manager tries a registry that it cannot reach thousands of times. */
const MAX_REFUSALS = 100;

/** Adds each refusal of a build to its log once. */
export class RefusalLines {
  readonly #add: (line: string) => void;
  readonly #seen = new Set<string>();

  constructor(add: (line: string) => void) {
    this.#add = add;
  }

  note(refusal: WorkloadRefusal): void {
    const line = describeRefusal(refusal);
    if (this.#seen.has(line) || this.#seen.size > MAX_REFUSALS) return;
    this.#seen.add(line);
    const isLast = this.#seen.size > MAX_REFUSALS;
    this.#add(
      isLast ? `the network of builds refused more than ${MAX_REFUSALS} things: the rest is not shown` : line,
    );
  }
}
