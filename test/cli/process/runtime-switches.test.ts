// NODE_OPTIONS as Node reads it, and which of it may stand in the environment of a process that holds secrets.
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { agentPreload } from '../../../src/cli/client/node-preload.ts';
import {
  refusedSwitch,
  refuseRuntimeSwitches,
  withoutOwnPreload,
} from '../../../src/cli/process/runtime-switches.ts';
import { createScratch } from '../../support/scratch.ts';

describe('a switch that loads code, exposes memory or weakens a check is rejected by name', () => {
  it.each([
    ['--require ./x.cjs', '--require'],
    ['-r ./x.cjs', '-r'],
    ['-r=./x.cjs', '-r'],
    ['--import=data:text/javascript,0', '--import'],
    ['--loader ./x.mjs', '--loader'],
    ['--experimental-loader=./x.mjs', '--experimental-loader'],
    ['--experimental_loader=./x.mjs', '--experimental-loader'],
    ['--inspect', '--inspect'],
    ['--inspect=0.0.0.0:9229', '--inspect'],
    ['--inspect-brk', '--inspect-brk'],
    ['--inspect_wait', '--inspect-wait'],
    ['--inspect-port=9', '--inspect-port'],
    ['--debug-port=9', '--debug-port'],
    ['--env-file=.env', '--env-file'],
    ['--env-file-if-exists=.env', '--env-file-if-exists'],
    ['--openssl-config=./x.cnf', '--openssl-config'],
    ['--snapshot-blob=./x', '--snapshot-blob'],
    ['--heapsnapshot-signal=SIGUSR2', '--heapsnapshot-signal'],
    ['--heapsnapshot-near-heap-limit=1', '--heapsnapshot-near-heap-limit'],
    ['--report-on-signal', '--report-on-signal'],
    ['--no-report-exclude-env', '--no-report-exclude-env'],
    ['--no-disable-sigusr1', '--no-disable-sigusr1'],
    ['--tls-keylog=/tmp/x', '--tls-keylog'],
    ['--tls-min-v1.0', '--tls-min-v1.0'],
    ['--trace-tls', '--trace-tls'],
    ['--insecure-http-parser', '--insecure-http-parser'],
    ['--use-env-proxy', '--use-env-proxy'],
    ['--max-old-space-size=256  --require x', '--require'],
    ['"--require" "./a b.cjs"', '--require'],
    ['--no-warnings "--im"port=x', '--import'],
    ['"--\\import=x"', '--import'],
    ['--no-warnings\t--require=x', '--no-warnings\t--require'],
    ['--a-switch-of-a-later-node', '--a-switch-of-a-later-node'],
  ])('%s', (options, name) => {
    expect(refusedSwitch(options)).toBe(name);
    expect(() => refuseRuntimeSwitches({ NODE_OPTIONS: options })).toThrow(`NODE_OPTIONS has ${name}, `);
  });
});

describe('sizes, warnings and stricter switches are allowed', () => {
  it.each([
    '',
    '  ',
    '--max-old-space-size=256',
    '--max_old_space_size=256 --max-semi-space-size=4',
    '--no-warnings --disable-warning=DEP0040 --trace-deprecation',
    '--no-deprecation "--stack-trace-limit=50"',
    '--disable-sigusr1 --report-exclude-env --disable-proto=delete',
    '--dns-result-order=ipv4first',
  ])('%j, which Node accepts as well', (options) => {
    expect(refusedSwitch(options)).toBeUndefined();
    const { status, stderr } = spawnSync(process.execPath, ['-e', ''], {
      env: { NODE_OPTIONS: options },
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, '']);
  });
});

it('a value may be a separate word, even one that is a switch elsewhere', () => {
  expect(refusedSwitch('--disable-warning "DEP0040" --title=x')).toBe('--title');
});

it.each([
  ['NODE_TLS_REJECT_UNAUTHORIZED', '0', 'SALLYPORT_UPSTREAM_CA'],
  ['NODE_DEBUG', 'http,tls', 'SALLYPORT_LOG_LEVEL'],
  ['NODE_DEBUG_NATIVE', 'CRYPTO', 'SALLYPORT_LOG_LEVEL'],
])('%s=%s is rejected with the setting to use instead', (name, value, instead) => {
  expect(() => refuseRuntimeSwitches({ [name]: value })).toThrow(new RegExp(`^${name}\\b.*${instead}`));
});

it.each([
  ['NODE_TLS_REJECT_UNAUTHORIZED', '1'],
  ['NODE_DEBUG', ''],
])('%s=%j changes nothing and is allowed', (name, value) => {
  expect(() => refuseRuntimeSwitches({ [name]: value })).not.toThrow();
});

describe('a preload that `sallyport env` added', () => {
  const optionsWithout = (NODE_OPTIONS: string): string | undefined =>
    withoutOwnPreload({ NODE_OPTIONS })['NODE_OPTIONS'];
  const name = 'agent-preload-0123456789abcdef.cjs';

  it('does not count if it has our text', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write(name, agentPreload);
    // Fails when the text has changed: the digest in runtime-switches.ts must be that of the new one.
    expect(optionsWithout(`--a --require=${file} --b`)).toBe('--a --b');
    expect(withoutOwnPreload({ A: 'x' })).toEqual({ A: 'x' });
  });

  it('counts if it has another text, name or spelling, or is gone', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write(name, agentPreload);
    const other = await scratch.write('agent-preload-fedcba9876543210.cjs', `${agentPreload} `);
    const named = await scratch.write('mine.cjs', agentPreload);
    for (const path of [other, named, `/nonexistent/${name}`])
      expect(optionsWithout(`--require=${path}`)).toBe(`--require=${path}`);
    for (const options of [`--require ${file}`, `"--require=${file}"`, `--import=${file}`])
      expect(optionsWithout(options)).toBe(options);
  });
});
