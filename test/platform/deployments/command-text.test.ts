import { describe, expect, it } from 'vitest';
import { enter, findCommandProblem, parseCommands } from '../../../src/platform/deployments/command-text.ts';

const plain = (words: readonly string[], directory = 'app', env = {}) => ({ words, directory, env });

describe('a command', () => {
  it.each([
    ['npm ci', [plain(['npm', 'ci'])]],
    ['  npm   ci ', [plain(['npm', 'ci'])]],
    ['npm ci && npm run build', [plain(['npm', 'ci']), plain(['npm', 'run', 'build'])]],
    ['npm ci&&npm run build', [plain(['npm', 'ci']), plain(['npm', 'run', 'build'])]],
    ["echo 'two words' a' b'", [plain(['echo', 'two words', 'a b'])]],
    ["echo ''", [plain(['echo', ''])]],
    ['NODE_ENV=test A= tsc -p .', [plain(['tsc', '-p', '.'], 'app', { NODE_ENV: 'test', A: '' })]],
    ["A='b c' tsc", [plain(['tsc'], 'app', { A: 'b c' })]],
    ['cd web && npm ci && cd ../.. && tsc', [plain(['npm', 'ci'], 'app/web'), plain(['tsc'], '')]],
    // Nothing expands them.
    ['ls *.ts ~ {a,b} #x !y (z)', [plain(['ls', '*.ts', '~', '{a,b}', '#x', '!y', '(z)'])]],
    ['node --a=b=c x=y', [plain(['node', '--a=b=c', 'x=y'])]],
  ])('%s', (text, commands) => expect(parseCommands(text, 'app')).toEqual({ ok: true, commands }));

  it.each([
    ...Array.from('"`\\\n\r\0\t|;$><', (sign) => [`npm ci ${sign} evil`, 'and no shell runs it']),
    ['npm ci & evil', 'and no shell runs it'],
    ['npm ci &&& evil', 'and no shell runs it'],
    ['npm ci &&&& evil', 'and no shell runs it'],
    ["echo 'open", 'is not closed'],
    ['', 'a program is missing'],
    ['  ', 'a program is missing'],
    ['npm ci &&', 'a program is missing'],
    ['A=b && npm ci', 'a program is missing'],
    ['cd', 'cd needs one directory'],
    ['cd a b', 'cd needs one directory'],
    ['cd /etc && ls', 'cd needs one directory within the source'],
    ['cd ../.. && ls', 'cd needs one directory within the source'],
  ] as [string, string][])('%j is refused', (text, problem) => {
    const parsed = parseCommands(text, 'app');
    expect(parsed.ok ? '' : parsed.problem).toContain(problem);
  });
});

it.each([
  ['', '.', ''],
  ['', 'a/', 'a'],
  ['a', '..', ''],
  ['a', './b//c', 'a/b/c'],
  ['a', '...', 'a/...'],
  ['a', '../..', undefined],
  ['', '..', undefined],
  ['', '/a', undefined],
])('from %j, %j is %j', (from, path, to) => expect(enter(from, path)).toBe(to));

it.each([
  '&&&&',
  'npm ci &&',
  '&& npm ci',
  'npm ci && && npm test',
  'A=b && npm ci',
  "echo 'open",
  'cd a b && ls',
])('no builder runs %j, wherever it begins', (text) => {
  expect(findCommandProblem(text)).toBeDefined();
  expect(parseCommands(text, 'app')).toMatchObject({ ok: false });
});

it.each(['', ' ', 'npm ci', 'cd .. && A=b npm ci', "A=b echo 'two words' && true"])('%j may be run', (text) =>
  expect(findCommandProblem(text)).toBeUndefined(),
);
