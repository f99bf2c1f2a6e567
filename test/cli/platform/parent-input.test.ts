// What a platform hands to the programs that it starts: the settings, and the variables of other programs that each of them uses.
import { expect, it } from 'vitest';
import { toParentInput, withAwsVariables } from '../../../src/cli/platform/parent-input.ts';

const environment = {
  ...{
    AWS_PROFILE: 'exports',
    AWS_CONFIG_FILE: '/etc/aws',
    npm_config_registry: 'https://npm',
    PIP_INDEX_URL: 'https://pip',
  },
  ...{
    XDG_CONFIG_HOME: '/home/config',
    EDITOR: 'vi',
    SALLYPORT_PLATFORM_LISTEN: '127.0.0.1:0',
    PATH: '/bin',
  },
};
const input = toParentInput({ a: 1 }, environment, new Set(['SALLYPORT_PLATFORM_LISTEN']));

it('has the document, the variables that are settings, and those of package managers and of the client of S3', () => {
  expect(input.document).toEqual({ a: 1 });
  expect(input.variables).toEqual({ SALLYPORT_PLATFORM_LISTEN: '127.0.0.1:0' });
  expect(Object.keys(input.environment).toSorted()).toEqual([
    ...['AWS_CONFIG_FILE', 'AWS_PROFILE', 'PIP_INDEX_URL', 'XDG_CONFIG_HOME', 'npm_config_registry'],
  ]);
});

it('has no variables of package managers for a program that installs nothing', () => {
  expect(withAwsVariables(input)).toEqual({
    ...input,
    environment: { AWS_PROFILE: 'exports', AWS_CONFIG_FILE: '/etc/aws' },
  });
});
