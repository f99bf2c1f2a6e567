import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Log } from '../../../../src/base/log.ts';
import {
  parseNpmConfig,
  parsePipConfig,
  readRegistries,
  toRegistries,
} from '../../../../src/platform/builder/environment/registries.ts';
import { createScratch } from '../../../support/scratch.ts';

describe('the configuration of npm', () => {
  it('has registries, without their credentials', () => {
    const config = {
      registry: 'https://user:secret@npm.example.com:8443/all/',
      '@own:registry': 'http://10.0.0.5:4873/',
      '//npm.example.com/:_authToken': 'secret',
      '@bad:registry': 'file:///etc',
    };
    expect(parseNpmConfig(JSON.stringify(config))).toEqual({
      registry: 'https://npm.example.com:8443/all/',
      scopes: { '@own:registry': 'http://10.0.0.5:4873/' },
    });
  });

  it('has the registry of a variable, where npm shows none because its URL has a password', () => {
    const variable = 'https://user:secret@npm.example.com/';
    expect(parseNpmConfig('{}', variable).registry).toBe('https://npm.example.com/');
    const shown = '{"registry": "https://shown.example.com/"}';
    expect(parseNpmConfig(shown, variable).registry).toBe('https://shown.example.com/');
  });

  it.each(['', 'npm error', '[]', '{"registry": null}'])('%j is the default', (text) =>
    expect(parseNpmConfig(text)).toEqual({ registry: 'https://registry.npmjs.org/', scopes: {} }),
  );
});

describe('the configuration of pip', () => {
  it('has indexes; what comes later counts', () => {
    const text = [
      "global.cert='/etc/ssl/certs/ca-certificates.crt'",
      "global.index-url='https://first.example.com/simple'",
      "global.extra-index-url='\\nhttps://a.example.com/simple\\nhttps://u:p@b.example.com/simple'",
      ":env:.index-url='https://pip.example.com/simple'",
    ].join('\n');
    expect(parsePipConfig(text)).toEqual({
      index: 'https://pip.example.com/simple',
      extra: ['https://a.example.com/simple', 'https://b.example.com/simple'],
    });
  });

  it('is the default without one', () =>
    expect(parsePipConfig(":env:.find-links='/opt/wheels'")).toEqual({
      index: 'https://pypi.org/simple',
      extra: [],
    }));
});

describe('what builds get', () => {
  it('by default: the public registries with their other names', () => {
    const { hosts, env } = toRegistries(parseNpmConfig(''), parsePipConfig(''));
    expect(hosts).toEqual([
      ...['registry.npmjs.org:443', 'pypi.org:443', 'registry.yarnpkg.com:443', 'files.pythonhosted.org:443'],
    ]);
    expect(env).toEqual({
      npm_config_registry: 'https://registry.npmjs.org/',
      YARN_NPM_REGISTRY_SERVER: 'https://registry.npmjs.org',
      PIP_INDEX_URL: 'https://pypi.org/simple',
    });
  });

  it('of an operator with registries of its own: nothing public', () => {
    const npm = {
      registry: 'http://npm.example.com/',
      scopes: { '@own:registry': 'https://own.example.com:444/' },
    };
    const pip = { index: 'https://npm.example.com/pip', extra: ['https://more.example.com/'] };
    const { hosts, env, npmrc } = toRegistries(npm, pip);
    expect(hosts).toEqual([
      'npm.example.com:80',
      'own.example.com:444',
      'npm.example.com:443',
      'more.example.com:443',
    ]);
    expect(env).toMatchObject({ PIP_EXTRA_INDEX_URL: 'https://more.example.com/' });
    expect(npmrc).toBe('@own:registry=https://own.example.com:444/\n');
  });
});

const silent = { info: () => undefined } as unknown as Log;

it('npm and pip are asked with the settings of the operator, and without the other variables', async () => {
  await using scratch = await createScratch();
  const print = (file: string, script: string): Promise<void> => writeFile(join(scratch.path, file), script);
  await print(
    'npm.js',
    'const { npm_config_registry: registry, CANARY } = process.env;' +
      'console.log(JSON.stringify({ registry: CANARY ? "http://leak/" : registry }));',
  );
  await print('python3', '#!/bin/sh\necho ":env:.index-url=\'$PIP_INDEX_URL$CANARY\'"\n');
  await chmod(join(scratch.path, 'python3'), 0o755);
  const env = {
    ...{ PATH: scratch.path, CANARY: 'secret' },
    ...{ npm_config_registry: 'https://npm.example.com/', PIP_INDEX_URL: 'https://pip.example.com/' },
  };
  const asked = { node: process.execPath, npm: join(scratch.path, 'npm.js'), env };
  expect((await readRegistries(asked, silent)).hosts).toEqual(['npm.example.com:443', 'pip.example.com:443']);
});

it('npm is the one of the operator, whose Node says where the settings of all users are', async () => {
  await using scratch = await createScratch();
  await writeFile(join(scratch.path, 'own.js'), 'console.log("{}")');
  const npm = join(scratch.path, 'npm');
  await writeFile(npm, '#!/bin/sh\necho \'{"registry": "https://all.example.com/"}\'\n');
  await chmod(npm, 0o755);
  const asked = {
    ...{ node: process.execPath, npm: join(scratch.path, 'own.js') },
    env: { PATH: scratch.path },
  };
  expect((await readRegistries(asked, silent)).hosts).toContain('all.example.com:443');
});

it('an operator learns that a registry whose URL has a password is not used', async () => {
  await using scratch = await createScratch();
  const npm = await scratch.write('npm.js', 'console.log("{}")');
  const warned: string[] = [];
  const log = { ...silent, warn: (text: string) => void warned.push(text) } as unknown as Log;
  const { hosts } = await readRegistries({ node: process.execPath, npm, env: { PATH: '/nonexistent' } }, log);
  expect(hosts).toContain('registry.npmjs.org:443');
  expect(warned).toEqual([expect.stringContaining('its URL has a password')]);
});

it('programs that are not there have their defaults', async () => {
  const asked = { node: process.execPath, npm: '/nonexistent/npm.js', env: { PATH: '/nonexistent' } };
  expect((await readRegistries(asked, silent)).hosts).toContain('registry.npmjs.org:443');
});
