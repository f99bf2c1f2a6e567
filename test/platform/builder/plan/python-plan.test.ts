import { describe, expect, it } from 'vitest';
import { planPython } from '../../../../src/platform/builder/plan/python-plan.ts';

const plan = (dependencies: readonly string[], files: readonly string[] = [], directory = 'app') =>
  planPython(dependencies, directory, (path) => files.includes(path));

it.each([[[]], [['.']], [['./lib/', '..']]])('%j of a JavaScript deployment needs nothing', (dependencies) =>
  expect(plan(dependencies)).toEqual({ ok: true, commands: [] }),
);

it('packages and projects are installed into a virtual environment', () => {
  const files = ['app/requirements.txt', 'app/lib/pyproject.toml', 'setup.py', 'requirements.txt'];
  const planned = plan(['.', 'requests==2.31', './lib', '..'], files);
  const venv = { words: ['python3', '-m', 'venv', '.venv'], directory: 'app', env: {} };
  const words = ['.venv/bin/python', '-m', 'pip', 'install', '--no-input'];
  const named = [
    '--requirement',
    './requirements.txt',
    'requests==2.31',
    './lib',
    '--requirement',
    '../requirements.txt',
    '..',
  ];
  expect(planned).toEqual({
    ok: true,
    commands: [venv, { words: [...words, ...named], directory: 'app', env: {} }],
  });
});

describe('refused is', () => {
  it.each([
    [['ok', '--index-url=https://evil.example.com'], 'dependencies[1]: must be a package'],
    [['-r/etc/passwd'], 'no option of pip'],
    [[''], 'must be a package'],
    [[' requests'], 'must be a package'],
    [['../..'], 'is outside of the archive'],
    [['./../../lib'], 'is outside of the archive'],
  ])('%j', (dependencies, problem) => {
    const planned = plan(dependencies);
    expect(planned.ok ? '' : planned.problem).toContain(problem);
  });
});
