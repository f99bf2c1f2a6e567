import { describe, expect, it } from 'vitest';
import { auditLogRefusal, mayCreateListeners } from '../../../src/platform/identity/entitlement.ts';

const organization = { id: 'an id', isPersonal: false, plan: 'enterprise', config: {} };

describe('audit logs', () => {
  it.each([
    // flag, default, personal, plan, reason
    [true, false, false, 'enterprise', undefined],
    [true, true, false, 'enterprise', undefined],
    [undefined, true, false, 'enterprise', undefined],
    [undefined, false, false, 'enterprise', 'its feature can_use_audit_logs is off'],
    [null, true, false, 'enterprise', undefined],
    [false, true, false, 'enterprise', 'its feature can_use_audit_logs is off'],
    ['true', true, false, 'enterprise', 'its feature can_use_audit_logs is off'],
    [true, true, true, 'enterprise', 'it is a personal organization'],
    [undefined, true, true, 'enterprise', 'it is a personal organization'],
    [true, true, false, 'developer', 'its plan is not enterprise'],
    [undefined, true, false, 'plus', 'its plan is not enterprise'],
  ])('flag %s, default %s, personal %s, plan %s: %s', (flag, byDefault, isPersonal, plan, reason) => {
    const config = flag === undefined ? {} : { can_use_audit_logs: flag };
    const asked = { ...organization, isPersonal, plan, config };
    expect(auditLogRefusal(asked, { can_use_audit_logs: byDefault })).toBe(reason);
  });
});

describe('listeners', () => {
  it.each([
    ['enterprise', false, true],
    ['enterprise', true, false],
    ['developer', false, false],
  ])('plan %s, personal %s: %s', (plan, isPersonal, may) =>
    expect(mayCreateListeners({ ...organization, plan, isPersonal })).toBe(may),
  );
});
