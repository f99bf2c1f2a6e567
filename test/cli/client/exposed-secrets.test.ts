import { describe, expect, it } from 'vitest';
import { exposedSecretWarnings } from '../../../src/cli/client/exposed-secrets.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';

function warningsFor(
  caller: NodeJS.ProcessEnv,
  { enabled = true, replaced = {} }: { enabled?: boolean; replaced?: Record<string, string> } = {},
): readonly string[] {
  const headers = [
    { name: 'Authorization', type: 'workspace_secret', value: 'Basic {API_USER}:{API_KEY}' },
    { name: 'X-Key', type: 'workspace_secret', value: '{API_KEY}' },
    { name: 'X-Plain', type: 'plaintext', value: 'PLAIN' },
  ];
  const parsed = parseProxyConfig({ rules: [{ match_hosts: ['api.test'], headers, enabled }] });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return exposedSecretWarnings(parsed.value, caller, replaced);
}

describe('a variable of the caller that is named like a secret of a rule', () => {
  it('is reported once, without its value', () => {
    const warnings = warningsFor({ API_KEY: 'canary-5512', OTHER: 'x', PLAIN: 'x' });
    expect(warnings).toEqual([expect.stringMatching(/^API_KEY of your environment is passed on/)]);
    expect(warnings.join()).not.toContain('canary');
  });

  it.each([
    ['empty', { API_KEY: '' }, {}],
    ['named differently', { api_key: 'x', API_KEY_2: 'x' }, {}],
    ['replaced by a placeholder', { API_KEY: 'x' }, { replaced: { API_KEY: 'proxy-injected' } }],
    ['of a disabled rule', { API_KEY: 'x' }, { enabled: false }],
  ])('is not reported if it is %s', (_, caller, more) => expect(warningsFor(caller, more)).toEqual([]));

  it('is not reported without rules', () =>
    expect(exposedSecretWarnings(undefined, { API_KEY: 'x' }, {})).toEqual([]));
});
