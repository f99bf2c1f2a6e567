// The variables: their defaults, and what stops a start.
import { expect, it } from 'vitest';
import { Secret } from '../../../../src/base/secret.ts';
import type { ServedAs } from '../../../../src/platform/agent-server/configuration/deployment-input.ts';
import {
  parseAgentVariables,
  toAgentSettings,
} from '../../../../src/platform/agent-server/configuration/settings.ts';

function settingsOf(env: Readonly<Record<string, string>>, hasHandler = false): unknown {
  const parsed = parseAgentVariables(env);
  const settings = parsed.ok ? toAgentSettings(parsed.value, hasHandler) : parsed;
  return settings.ok
    ? settings.value
    : settings.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('\n');
}

it('has defaults for everything', () => {
  expect(settingsOf({})).toMatchObject({
    ...{
      access: 'none',
      isLoopback: true,
      isStudio: false,
      jobsPerWorker: 10,
      runTimeoutSeconds: 3600,
      drainSeconds: 180,
    },
    ...{ resumableTtlSeconds: 120, allowsTruncate: false },
  });
});

it.each<[Record<string, string>, boolean, string]>([
  [{ SALLYPORT_AGENT_LISTEN: '0.0.0.0:1' }, true, 'handler'],
  [{ SALLYPORT_AGENT_LISTEN: '0.0.0.0:1', SALLYPORT_AGENT_KEY_FILE: 'k' }, false, 'key_file'],
  [{ SALLYPORT_AGENT_LISTEN: '0.0.0.0:1', SALLYPORT_AGENT_AUTH: 'none' }, false, 'none'],
  [{ SALLYPORT_AGENT_LISTEN: 'unix:/run/a.sock' }, false, 'none'],
  [{ SALLYPORT_AGENT_KEY_FILE: 'k' }, true, 'handler'],
])('%j with a handler %s is %s', (env, hasHandler, access) =>
  expect(settingsOf(env, hasHandler)).toMatchObject({ access }),
);

it.each<[Record<string, string>, boolean, string]>([
  [{ SALLYPORT_AGENT_LISTEN: ':1' }, false, 'SALLYPORT_AGENT_LISTEN: is reachable from other machines'],
  [
    { SALLYPORT_AGENT_LISTEN: '127.example.com:1' },
    false,
    'SALLYPORT_AGENT_LISTEN: is reachable from other machines',
  ],
  [{ SALLYPORT_AGENT_LISTEN: ':1', SALLYPORT_AGENT_STUDIO: 'true' }, true, '--studio: admits everybody'],
  [{ SALLYPORT_AGENT_AUTH: 'none' }, true, 'SALLYPORT_AGENT_AUTH: none contradicts auth.path'],
  [{ SALLYPORT_AGENT_AUTH: 'none', SALLYPORT_AGENT_KEY_FILE: 'k' }, false, 'exclude each other'],
  [{ SALLYPORT_AGENT_AUTH: 'keys' }, false, 'SALLYPORT_AGENT_AUTH: must be none'],
  [{ N_JOBS_PER_WORKER: '0' }, false, 'N_JOBS_PER_WORKER: Input must be at least 1'],
  [
    { BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: '3601' },
    false,
    'BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: Input must be at most 3600',
  ],
  [{ LOG_LEVEL: 'loud' }, false, 'LOG_LEVEL: Input must be'],
  [{ MOUNT_PREFIX: '/a/../b' }, false, 'MOUNT_PREFIX: must be a path such as /agents'],
  [{ LANGGRAPH_CONFIG: '{' }, false, 'LANGGRAPH_CONFIG: must be JSON'],
  [{ LANGGRAPH_CONFIG: '{"agent":1}' }, false, 'LANGGRAPH_CONFIG.agent: Input must be an object'],
])('%j with a handler %s stops the start', (env, hasHandler, message) =>
  expect(settingsOf(env, hasHandler)).toContain(message),
);

const servedAs = (access: 'gateway' | 'handler'): ServedAs => ({
  ...{ id: 'd', name: 'app', revisionId: 'r', gatewayToken: new Secret('t'), access, mountPrefix: '' },
});
const instanceOf = (env: Record<string, string>, hasHandler: boolean, access: 'gateway' | 'handler') => {
  const parsed = parseAgentVariables({ SALLYPORT_AGENT_LISTEN: 'unix:/run/a.sock', ...env });
  return parsed.ok ? toAgentSettings(parsed.value, hasHandler, servedAs(access)) : parsed;
};

it.each([
  ['gateway', false],
  ['handler', true],
] as const)('an instance of a deployment is let in by its %s', (access, hasHandler) =>
  expect(instanceOf({}, hasHandler, access)).toMatchObject({ value: { access, servedAs: { id: 'd' } } }),
);

it.each<[Record<string, string>, boolean, 'gateway' | 'handler', string]>([
  [{}, false, 'handler', 'SALLYPORT_AGENT_INPUT: deployment.access is handler, and the configuration has no'],
  [{}, true, 'gateway', 'SALLYPORT_AGENT_INPUT: deployment.access must be handler'],
  [{ SALLYPORT_AGENT_LISTEN: '127.0.0.1:0' }, false, 'gateway', 'SALLYPORT_AGENT_LISTEN: must be unix:'],
  [{ SALLYPORT_AGENT_AUTH: 'none' }, false, 'gateway', 'SALLYPORT_AGENT_AUTH: has no meaning'],
  [{ SALLYPORT_AGENT_KEY_FILE: 'k' }, false, 'gateway', 'SALLYPORT_AGENT_KEY_FILE: has no meaning'],
  [{ SALLYPORT_AGENT_STUDIO: 'true' }, true, 'handler', '--studio: has no meaning'],
])('an instance with %j, a handler: %s, and access %s is refused', (env, hasHandler, access, message) => {
  const settings = instanceOf(env, hasHandler, access);
  const messages = settings.ok ? [] : settings.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
  expect(messages.join('\n')).toContain(message);
});
