import { expect, it } from 'vitest';
import { compileProxyConfig } from '../../../src/policy/compile.ts';
import { placeholdersOf } from '../../../src/policy/document/placeholders.ts';
import type { ProxyConfig } from '../../../src/policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'k' }];

function authored(...rules: readonly object[]): ProxyConfig {
  const parsed = parseProxyConfig({
    rules: rules.map((rule) => ({ match_hosts: ['api.test'], headers, ...rule })),
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value;
}

it('the first enabled rule that sets a name wins', () => {
  const { rules } = authored(
    { enabled: false, env_vars: { A: 'disabled' } },
    { env_vars: { A: 'first' } },
    { env_vars: { A: 'second', B: 'b' } },
  );
  expect(placeholdersOf(rules, () => false)).toEqual({ variables: { A: 'first', B: 'b' }, warnings: [] });
});

it('a name that is taken, or that controls a program, is not set', () => {
  const { rules } = authored({ name: 'mine', env_vars: { PATH: '/evil', TAKEN: 'x', API_KEY: 'k' } });
  const { variables, warnings } = placeholdersOf(rules, (name) => name === 'TAKEN');
  expect(variables).toEqual({ API_KEY: 'k' });
  expect(warnings).toEqual([
    expect.stringMatching(/^env_vars\.PATH of mine is not set/),
    expect.stringMatching(/^env_vars\.TAKEN of mine is not set/),
  ]);
});

it.each([
  ...['RANDOM', 'SRANDOM', 'OPTIND', 'HISTCMD', 'SECONDS', 'LINENO', 'UID', 'EUID', 'PPID', 'BASH_VERSINFO'],
  ...['COLUMNS', 'path', 'fpath', 'argv', 'STTY', 'TMPDIR', 'PWD', '_'],
])('%s is a variable of shells, which evaluate what is assigned to it', (name) => {
  const { rules } = authored({ env_vars: { [name]: 'a[$(touch evil)]', API_KEY: 'k' } });
  expect(placeholdersOf(rules, () => false).variables).toEqual({ API_KEY: 'k' });
});

it.each([
  'GROQ_API_KEY',
  'HISTORY_TOKEN',
  'MAIL_API_KEY',
  'PATHFINDER_KEY',
  'TERMINUS_TOKEN',
  'TTY_KEY',
  'PROMPTLAYER_API_KEY',
])('%s looks like a credential', (name) => {
  const { rules } = authored({ env_vars: { [name]: 'k' } });
  expect(placeholdersOf(rules, () => false).variables).toEqual({ [name]: 'k' });
});

it('a policy has the placeholders of its document', () => {
  const compiled = compileProxyConfig(
    authored({ env_vars: { API_KEY: 'k', PATH: '/evil' } }),
    () => undefined,
    1,
  );
  expect(compiled.ok && compiled.value.placeholders).toEqual({ API_KEY: 'k' });
});
