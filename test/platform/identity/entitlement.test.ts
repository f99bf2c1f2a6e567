import { describe, expect, it } from 'vitest';
import { mayCreateListeners, mayUseAuditLogs } from '../../../src/platform/identity/entitlement.ts';

const organization = { id: 'an id', isPersonal: false, plan: 'enterprise', config: {} };

describe('audit logs', () => {
  it.each([
    // flag, default, personal, plan, may
    [true, false, false, 'enterprise', true],
    [true, true, false, 'enterprise', true],
    [undefined, true, false, 'enterprise', true],
    [undefined, false, false, 'enterprise', false],
    [null, true, false, 'enterprise', true],
    [false, true, false, 'enterprise', false],
    ['true', true, false, 'enterprise', false],
    [true, true, true, 'enterprise', false],
    [undefined, true, true, 'enterprise', false],
    [true, true, false, 'developer', false],
    [undefined, true, false, 'plus', false],
  ])('flag %s, default %s, personal %s, plan %s: %s', (flag, byDefault, isPersonal, plan, may) => {
    const config = flag === undefined ? {} : { can_use_audit_logs: flag };
    const asked = { ...organization, isPersonal, plan, config };
    expect(mayUseAuditLogs(asked, { can_use_audit_logs: byDefault })).toBe(may);
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
