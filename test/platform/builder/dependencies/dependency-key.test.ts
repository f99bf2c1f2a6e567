import { expect, it } from 'vitest';
import { dependencyKey } from '../../../../src/platform/builder/dependencies/dependency-key.ts';

const command = { words: ['npm', 'ci'], directory: 'app', env: { A: '1' } };
const ground = { nodeVersion: 'v26.0.0', platform: 'linux-x64', env: { npm_config_registry: 'https://r/' } };
const inputs = new Map([
  ['package.json', '{}'],
  ['package-lock.json', '{}'],
]);
const key = dependencyKey({ command, inputs }, ground);

it('is the same for the same files in any order, wherever they are', () => {
  expect(key).toMatch(/^[0-9a-f]{64}$/);
  const reversed = new Map([...inputs].toReversed());
  expect(dependencyKey({ command: { ...command, directory: '' }, inputs: reversed }, ground)).toBe(key);
});

it.each([
  ['a file', { command, inputs: new Map([...inputs, ['.npmrc', '']]) }, ground],
  ['content', { command, inputs: new Map([...inputs, ['package.json', '{ }']]) }, ground],
  ['content that moved', { command, inputs: new Map([['package.json', '{}package-lock.json{}']]) }, ground],
  ['a command', { command: { ...command, words: ['npm', 'install'] }, inputs }, ground],
  ['a variable', { command: { ...command, env: { A: '2' } }, inputs }, ground],
  ['a registry', { command, inputs }, { ...ground, env: { npm_config_registry: 'https://s/' } }],
  ['Node', { command, inputs }, { ...ground, nodeVersion: 'v27.0.0' }],
  ['a processor', { command, inputs }, { ...ground, platform: 'linux-arm64' }],
])('is another one for another: %s', (_, plan, other) => expect(dependencyKey(plan, other)).not.toBe(key));
