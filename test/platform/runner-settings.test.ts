// The settings of the runner, as a part of those of the platform.
import { expect, it } from 'vitest';
import { parsePlatformConfig, type PlatformConfig } from '../../src/platform/config.ts';

function configOf(document: object, env: NodeJS.ProcessEnv = {}): PlatformConfig {
  const parsed = parsePlatformConfig(document, env);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value;
}

it('isolates deployments, and listens on loopback', () => {
  const { runner } = configOf({});
  expect(runner).toMatchObject({ isStarted: true, isolation: 'auto', databaseConnections: 200 });
  expect(runner.gateway).toMatchObject({ listen: { host: '127.0.0.1', port: 8090 }, publicUrl: undefined });
  expect(runner.limits.instances).toBe(64);
});

it.each([
  ['0.0.0.0:9000', 9010],
  ['127.0.0.1:0', 0],
  ['127.0.0.1:65535', 65_525],
])('of a platform at %s the gateway is at port %i of loopback', (listen, port) => {
  expect(configOf({ listen }).runner.gateway.listen).toEqual({ host: '127.0.0.1', port });
});

it('reads variables over the file', () => {
  const document = { runner: { isolation: 'user', gateway: { public_url: 'https://d.test/' } } };
  const env = { SALLYPORT_PLATFORM_RUNNER_ISOLATION: 'none', SALLYPORT_PLATFORM_RUNNER_START: 'FALSE' };
  const { runner } = configOf(document, env);
  expect(runner).toMatchObject({ isolation: 'none', isStarted: false });
  expect(runner.gateway.publicUrl).toBe('https://d.test');
});

it('names a variable that is wrong', () => {
  const parsed = parsePlatformConfig({}, { SALLYPORT_PLATFORM_RUNNER_LIMITS_AGENT_CONNECTIONS: '1' });
  expect(parsed).toMatchObject({
    ok: false,
    issues: [{ loc: ['SALLYPORT_PLATFORM_RUNNER_LIMITS_AGENT_CONNECTIONS'] }],
  });
});
