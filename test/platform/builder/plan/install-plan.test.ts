import { describe, expect, it } from 'vitest';
import { planInstall } from '../../../../src/platform/builder/plan/install-plan.ts';

const pack = (document: object = {}): string => JSON.stringify({ name: 'app', ...document });
const npmLock = JSON.stringify({
  lockfileVersion: 3,
  packages: { '': {}, 'node_modules/a': { version: '1.0.0' } },
});
const planOf = (files: Readonly<Record<string, string>>) =>
  planInstall(new Map(Object.entries(files)), 'app');
const commandOf = (files: Readonly<Record<string, string>>): string => {
  const { command } = planOf(files) ?? {};
  return command?.words.join(' ') ?? '';
};

const BERRY =
  '__metadata:\n  version: 8\n\n"app@workspace:.":\n  version: 0\n  resolution: "app@workspace:."\n';

describe('what is installed by', () => {
  it.each([
    [
      'package-lock.json',
      { 'package.json': pack(), 'package-lock.json': npmLock },
      'npm ci --no-audit --no-fund',
    ],
    [
      'npm-shrinkwrap.json',
      { 'package.json': pack(), 'npm-shrinkwrap.json': npmLock },
      'npm ci --no-audit --no-fund',
    ],
    ['package.json', { 'package.json': pack() }, 'npm install --no-audit --no-fund'],
    [
      'pnpm-lock.yaml before the others',
      { 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n", 'yarn.lock': '', 'package-lock.json': npmLock },
      'npm exec --yes --package=pnpm@10 -- pnpm install --frozen-lockfile',
    ],
    [
      'an older pnpm-lock.yaml',
      { 'pnpm-lock.yaml': 'settings: {}\nlockfileVersion: 6.0\n' },
      'npm exec --yes --package=pnpm@8 -- pnpm install --frozen-lockfile',
    ],
    [
      'pnpm in the version of packageManager',
      { 'pnpm-lock.yaml': '', 'package.json': pack({ packageManager: 'pnpm@9.1.2+sha512.abc' }) },
      'npm exec --yes --package=pnpm@9.1.2 -- pnpm install --frozen-lockfile',
    ],
    [
      'pnpm, where packageManager is no version',
      { 'pnpm-lock.yaml': '', 'package.json': pack({ packageManager: 'pnpm@9.1.2 --evil' }) },
      'npm exec --yes --package=pnpm@10 -- pnpm install --frozen-lockfile',
    ],
    [
      'yarn.lock before that of npm',
      { 'yarn.lock': '# yarn lockfile v1\n', 'package-lock.json': npmLock },
      'npm exec --yes --package=yarn@1.22.22 -- yarn install --frozen-lockfile --non-interactive',
    ],
    [
      'yarn.lock of a newer Yarn',
      { 'yarn.lock': BERRY },
      'npm exec --yes --package=@yarnpkg/cli-dist@4 -- yarn install --immutable',
    ],
    [
      'Yarn in the version of packageManager',
      { 'yarn.lock': '', 'package.json': pack({ packageManager: 'yarn@3.6.1' }) },
      'npm exec --yes --package=@yarnpkg/cli-dist@3.6.1 -- yarn install --immutable',
    ],
    ['nothing', { 'binding.gyp': '{}' }, ''],
  ] as [string, Record<string, string>, string][])('%s', (_, files, command) =>
    expect(commandOf(files)).toBe(command),
  );
});

it('a plan says where and why', () => {
  expect(planOf({ 'package.json': pack() })).toMatchObject({
    command: { directory: 'app' },
    reason: 'package.json, without a lock file',
  });
});

describe('what is installed may be used again', () => {
  const base = { 'package.json': pack({ scripts: { test: 'x' } }), 'package-lock.json': npmLock };
  it.each([
    ['with a lock file', base],
    [
      'with harmless settings',
      { ...base, '.npmrc': 'registry=https://registry.example.com/\nlegacy-peer-deps=true\n' },
    ],
    [
      'with one of pnpm',
      {
        'package.json': pack(),
        'pnpm-lock.yaml': '',
        'pnpm-workspace.yaml': 'onlyBuiltDependencies:\n  - a\n',
      },
    ],
    ['with one of a newer Yarn', { 'package.json': pack(), 'yarn.lock': BERRY }],
  ])('%s', (_, files) => expect(planOf(files)?.inputs).toEqual(new Map(Object.entries(files))));

  it.each([
    ['without a lock file', { 'package.json': pack() }],
    ['without package.json', { 'package-lock.json': npmLock }],
    ['with a package.json that is no JSON', { ...base, 'package.json': '{' }],
    ['with a package.json that is a list', { ...base, 'package.json': '[]' }],
    ['with workspaces', { ...base, 'package.json': pack({ workspaces: ['packages/*'] }) }],
    ['with a script of its own', { ...base, 'package.json': pack({ scripts: { postinstall: 'x' } }) }],
    ['with a name that repeats', { ...base, 'package.json': '{"scripts":{},"scripts":{"prepare":"x"}}' }],
    [
      'with a package of its own',
      {
        ...base,
        'package-lock.json': '{"packages":{"node_modules/a":{"resolved":"packages/a","link": true}}}',
      },
    ],
    ['with a file as a package', { ...base, 'package.json': pack({ dependencies: { a: 'file:./a.tgz' } }) }],
    ['with a native module of its own', { ...base, 'binding.gyp': '{}' }],
    ['with settings that name files', { ...base, '.npmrc': 'cafile=./ca.pem' }],
    ['with settings of variables', { ...base, '.npmrc': '//registry.example.com/:_authToken=${TOKEN}' }],
    [
      'with packages of pnpm',
      { 'package.json': pack(), 'pnpm-lock.yaml': '', 'pnpm-workspace.yaml': 'packages:\n  - a\n' },
    ],
    ['with patches', { 'package.json': pack(), 'pnpm-lock.yaml': 'patchedDependencies:\n  a: {}\n' }],
    [
      'with another package of a newer Yarn',
      { 'package.json': pack(), 'yarn.lock': `${BERRY}"b@workspace:b":\n` },
    ],
    ['with a program of pnpm', { 'package.json': pack(), 'pnpm-lock.yaml': '', '.pnpmfile.cjs': '' }],
    ['with a program of Yarn', { 'package.json': pack(), 'yarn.lock': '', '.yarnrc.yml': 'yarnPath: x.cjs' }],
  ] as [string, Record<string, string>][])('not %s', (_, files) =>
    expect(planOf(files)?.inputs).toBeUndefined(),
  );
});
