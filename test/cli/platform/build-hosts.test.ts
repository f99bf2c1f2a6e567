// `runner.builds.allow_hosts`, as the programs that start with it check it.
import { join } from 'node:path';
import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { findBuildHostIssues } from '../../../src/cli/platform/build-hosts.ts';
import { createScratch } from '../../support/scratch.ts';
import { program, runToEnd } from '../../support/spawned-process.ts';

it.each([
  [[]],
  [['registry.example.com', '*.example.com', 'registry.example.com:4873', '10.0.0.0/8', '[fd00::1]:443']],
])('%j is what builds may reach', async (hosts) => {
  expect(await findBuildHostIssues(hosts, {})).toEqual([]);
});

it.each([
  ['https://registry.example.com', /scheme/],
  ['registry.example.com/path', /path|host/i],
  ['*', /./],
  ['10.0.0.1/8', /10\.0\.0\.0\/8/],
  ['registry.example.com:99999', /port/i],
  ['a b', /./],
])('%s is wrong, at its place', async (wrong, message) => {
  const issues = await findBuildHostIssues(['good.example.com', wrong], {});
  expect(issues).toMatchObject([{ loc: ['runner', 'builds', 'allow_hosts', 1] }]);
  expect(issues[0]?.msg).toMatch(message);
});

it.each(['platform', 'runner'])('sallyport %s does not start, and names the entry', async (command) => {
  await using scratch = await createScratch();
  const file = join(scratch.path, 'platform.json');
  const document = { runner: { builds: { allow_hosts: ['good.example.com', 'https://bad.example.com'] } } };
  await writeFile(file, JSON.stringify(document));
  const data = { SALLYPORT_PLATFORM_DATA_DIR: join(scratch.path, 'data') };
  const run = (args: readonly string[], env: Readonly<Record<string, string>>) =>
    runToEnd(process.execPath, [program, command, ...args], { env: { ...data, ...env } });
  const byFile = await run(['--config', file], {});
  expect([byFile.code, byFile.stderr]).toEqual([2, expect.stringContaining('runner.builds.allow_hosts[1]')]);
  const variable = 'SALLYPORT_PLATFORM_RUNNER_BUILDS_ALLOW_HOSTS';
  const byVariable = await run([], { [variable]: 'good.example.com,*' });
  expect([byVariable.code, byVariable.stderr]).toEqual([2, expect.stringContaining(variable)]);
});
