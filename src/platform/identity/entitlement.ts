// What the plan and the flags of an organization allow it to use. Pure.
import type { Organization } from './caller.ts';

export type EntitlementDefaults = {
  /** For organizations that are not personal and have no flag of their own. */
  readonly can_use_audit_logs: boolean;
};

/** What an organization's own flag says wins over the default, also when it says no. */
export function mayUseAuditLogs(
  { plan, isPersonal, config }: Organization,
  defaults: EntitlementDefaults,
): boolean {
  if (plan !== 'enterprise' || isPersonal) return false;
  return (config['can_use_audit_logs'] ?? defaults.can_use_audit_logs) === true;
}

export function mayCreateListeners({ plan, isPersonal }: Organization): boolean {
  return plan === 'enterprise' && !isPersonal;
}
