import { describe, expect, it } from 'vitest';
import {
  isKnownVariable,
  refuseUnknownGuards,
  unknownVariableWarnings,
} from '../../src/cli/unknown-variables.ts';
import { readSources } from '../architecture/source-tree.ts';
import { program, SpawnedProcess, spawnSallyport } from '../support/spawned-process.ts';

describe('an unknown variable with our prefix', () => {
  it.each([
    ['SALLYPORT_LISTN', 'SALLYPORT_LISTEN'],
    ['SALLYPORT_LSITEN', 'SALLYPORT_LISTEN'],
    ['SALLYPORT_ALLOW_CLIENT', 'SALLYPORT_ALLOW_CLIENTS'],
    ['SALLYPORT_TIMEOUT_DRAIN_MS', 'SALLYPORT_TIMEOUTS_DRAIN_MS'],
    ['SALLYPORT_DRAIN_MS', 'SALLYPORT_TIMEOUTS_DRAIN_MS'],
    ['SALLYPORT_TOKEN_FILE', 'SALLYPORT_AUTH_TOKEN_FILE'],
    ['SALLYPORT_SECRETS_API_KEY', 'SALLYPORT_SECRET_<NAME>'],
    ['SALLYPORT_SECERT_API_KEY', 'SALLYPORT_SECRET_<NAME>'],
  ])('%s gets the suggestion %s', (name, near) => {
    expect(unknownVariableWarnings({ [name]: 'x' })).toEqual([
      `${name} is not a setting: did you mean ${near}?`,
    ]);
  });

  it('and similar to none has no effect', () => {
    expect(unknownVariableWarnings({ SALLYPORT_VERBOSITY: 'x' })).toEqual([
      'SALLYPORT_VERBOSITY is not a setting: it has no effect',
    ]);
  });

  it('is named, without its value', () => {
    const value = 'sesame-open-now';
    expect(unknownVariableWarnings({ SALLYPORT_LISTN: value }).join()).not.toContain(value);
  });
});

describe('an unknown variable about who may use the proxy', () => {
  it.each([
    ['SALLYPORT_AUTH_TOKEN', 'set SALLYPORT_AUTH_TOKEN_FILE instead, or unset it'],
    ['SALLYPORT_ALLOW_CLIENT', 'set SALLYPORT_ALLOW_CLIENTS instead, or unset it'],
    ['SALLYPORT_AUTHENTICATION_MODE', ': unset it'],
    ['SALLYPORT_ALLOWED_NETS', ': unset it'],
  ])('%s stops the start', (name, advice) => {
    const value = 'sesame-open-now';
    expect(() => refuseUnknownGuards({ [name]: value })).toThrow(
      expect.objectContaining({ name: 'InputError', message: expect.stringContaining(advice) }),
    );
    expect(() => refuseUnknownGuards({ [name]: value })).not.toThrow(new RegExp(value));
  });

  it('does not stop the start where it is a setting, empty or not ours', () => {
    const known = { SALLYPORT_AUTH: 'none', SALLYPORT_AUTH_TOKEN_FILE: '/x', SALLYPORT_ALLOW_CLIENTS: '::1' };
    const others = { SALLYPORT_AUTH_TOKEN: '', ALLOW_CLIENTS: 'x', SALLYPORT_LISTN: 'x' };
    expect(() => refuseUnknownGuards({ ...known, ...others })).not.toThrow();
  });
});

describe('there is no warning about', () => {
  it.each([
    ['a setting', { SALLYPORT_LISTEN: '127.0.0.1:0' }],
    ['a limit', { SALLYPORT_LIMITS_MAX_FIELDS: '10' }],
    ['a secret', { SALLYPORT_SECRET_API_KEY: 'x', SALLYPORT_SECRET_OTHER_FILE: '/x' }],
    ['what the launcher leaves', { SALLYPORT_OWN_THREADPOOL: '1', SALLYPORT_LAUNCHER_PID: '7' }],
    ['what is set to nothing, as for a setting', { SALLYPORT_LISTN: '' }],
    ['what is not ours', { SALLY_LISTEN: 'x', MY_SALLYPORT_LISTEN: 'x' }],
    [
      'what Kubernetes sets for a service of our name',
      {
        SALLYPORT_SERVICE_HOST: '10.0.0.1',
        SALLYPORT_SERVICE_PORT: '3128',
        SALLYPORT_SERVICE_PORT_PROXY: '3128',
        SALLYPORT_PORT: 'tcp://10.0.0.1:3128',
        SALLYPORT_PORT_3128_TCP_ADDR: '10.0.0.1',
        SALLYPORT_EU_SERVICE_HOST: '10.0.0.2',
        SALLYPORT_EU_PORT_3128_TCP: 'tcp://10.0.0.2:3128',
      },
    ],
  ])('%s', (_, env) => {
    expect(unknownVariableWarnings(env)).toEqual([]);
  });
});

it('a name like that of a service is reported if there is no such service', () => {
  expect(unknownVariableWarnings({ SALLYPORT_PORT: '3128' })).toHaveLength(1);
});

it('every variable that the sources name is known', () => {
  const sources = [...readSources('src/**/*.ts'), ...readSources('bin/*.js')];
  const named = sources.flatMap(({ text }) => text.match(/\bSALLYPORT_[A-Z0-9][A-Z0-9_]*/g) ?? []);
  expect(named).toContain('SALLYPORT_HANDED_SECRETS');
  expect([...new Set(named)].filter((name) => !isKnownVariable(name))).toEqual([]);
});

describe('a misspelt variable is reported at the start of', () => {
  const isReported = ({ level, msg }: Readonly<Record<string, unknown>>): boolean =>
    level === 'warn' && msg === 'SALLYPORT_LISTN is not a setting: did you mean SALLYPORT_LISTEN?';
  const env = { SALLYPORT_LISTN: '127.0.0.1:1' };

  it('proxy', async () => {
    await using proxy = await spawnSallyport({ proxyConfig: {}, env });
    await proxy.process.record(isReported);
  });

  it('run', async () => {
    const args = [program, 'run', '--log', '-', '--', process.execPath, '--version'];
    await using child = new SpawnedProcess(process.execPath, args, { env });
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.records.filter(isReported)).toHaveLength(1);
  });
});
