// The variables: their defaults, and what stops a start.
import { expect, it } from 'vitest';
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
    ...{ resumableTtlSeconds: 120, errorFormat: 'json', allowsTruncate: false },
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
