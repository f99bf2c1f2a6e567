// The features that an organization may use, by its plan and its flags. Pure.
import type { Organization } from './authentication.ts';

export type EntitlementDefaults = {
  /** For organizations that are not personal and do not set the flag themselves. */
  readonly can_use_audit_logs: boolean;
};

/** The organization's own flag overrides the default, also when it is false. */
export function mayUseAuditLogs({ plan, isPersonal, config }: Organization, defaults: EntitlementDefaults) {
  if (plan !== 'enterprise' || isPersonal) return false;
  return (config['can_use_audit_logs'] ?? defaults.can_use_audit_logs) === true;
}

export function mayCreateListeners({ plan, isPersonal }: Organization): boolean {
  return plan === 'enterprise' && !isPersonal;
}
