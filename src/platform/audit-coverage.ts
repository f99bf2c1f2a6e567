// What a verification could not compare, and why. A log without checkpoints outside the database could have been
// rewritten as a whole, so it is not reported as intact. Pure.
import type { ChainCoverage } from './audit/verify.ts';

export type Coverage = {
  readonly chains: readonly ChainCoverage[];
  /** Keys that signed checkpoints according to the database and were not given. */
  readonly unknownKeys: number;
  /** Public keys that were given. */
  readonly keys: number;
  /** Where checkpoints were read from: a file or a bucket. */
  readonly location: string;
  readonly organizationId: string | undefined;
  readonly nowMs: number;
};

/** Many times the interval of checkpoints: an organization without one by then is not waiting for its first. */
const FIRST_CHECKPOINT_MS = 60 * 60 * 1000;

/** One sentence each; none when every chain was compared with its checkpoints. */
export function findUncompared(coverage: Coverage): readonly string[] {
  const { chains, unknownKeys, keys, location, organizationId, nowMs } = coverage;
  const stored = chains.filter(({ isStored }) => isStored);
  const compared = chains.filter(({ checkpoints }) => checkpoints > 0);
  if (stored.length + compared.length === 0)
    return [
      organizationId === undefined
        ? 'the audit log has no events'
        : `the audit log has no events of the organization ${organizationId}`,
    ];
  const reasons: string[] = [];
  if (keys === 0) reasons.push('there is no public key of the checkpoints: name it with --public-key');
  if (unknownKeys > 0)
    reasons.push(
      `${unknownKeys} other ${unknownKeys === 1 ? 'key' : 'keys'} signed checkpoints that were not checked: verify again with its --public-key and its --checkpoints`,
    );
  if (compared.length === 0)
    reasons.push(`no event was compared with a signed checkpoint: there is none in ${location}`);
  else {
    const late = stored.filter(
      ({ checkpoints, firstMs = nowMs }) => checkpoints === 0 && nowMs - firstMs > FIRST_CHECKPOINT_MS,
    );
    for (const { organizationId: id } of late)
      reasons.push(`there is no checkpoint of the organization ${id} in ${location}`);
  }
  return reasons;
}
