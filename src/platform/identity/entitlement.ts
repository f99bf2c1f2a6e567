// The features that an organization may use, by its plan and its flags. Pure.
import type { Organization } from './authentication.ts';

export type EntitlementDefaults = {
  /** For organizations that are not personal and do not set the flag themselves. */
  readonly can_use_audit_logs: boolean;
};

/**
 * Why the organization may not read its audit log, for its administrator; undefined when it may. The organization's own flag
 * overrides the default, also when it is false.
 */
export function auditLogRefusal(
  { plan, isPersonal, config }: Organization,
  defaults: EntitlementDefaults,
): string | undefined {
  if (isPersonal) return 'it is a personal organization';
  if (plan !== 'enterprise') return 'its plan is not enterprise';
  const isOn = (config['can_use_audit_logs'] ?? defaults.can_use_audit_logs) === true;
  return isOn ? undefined : 'its feature can_use_audit_logs is off';
}

export function mayCreateListeners({ plan, isPersonal }: Organization): boolean {
  return plan === 'enterprise' && !isPersonal;
}
