// Help as a user meets it: on every command, before anything else is read.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CommandDeclaration } from '../../../src/cli/command/declaration.ts';
import { allCommands } from '../../../src/cli/command/help.ts';
import { type Finished, program, projectRoot, runToEnd } from '../../support/spawned-process.ts';
import { everyNth } from '../../support/run-size.ts';

const sallyport = (...args: string[]): Promise<Finished> => runToEnd(process.execPath, [program, ...args]);

everyNth(3, allCommands, (some, options) =>
  describe.each(some)('the help of $name', (command) => {
    it('has the usage, each option with its default, examples and exit codes', options, async () => {
      const { code, stdout, stderr } = await sallyport(command.name, '--help');
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(new RegExp(`^usage: sallyport ${command.name}( |\\n)`));
      for (const [name, { fallback }] of Object.entries(command.options)) {
        expect(stdout).toContain(`--${name}`);
        if (fallback !== undefined) expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`default ${fallback}`);
      }
      for (const example of command.examples) expect(stdout).toContain(example);
      for (const [exit] of command.exitCodes) expect(stdout).toMatch(new RegExp(`^  ${exit} `, 'm'));
      expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
    });
  }),
);

describe('help', () => {
  it('is the same as -h, as `help COMMAND`, and beside wrong options', async () => {
    const { stdout } = await sallyport('check', '--help');
    for (const args of [
      ['check', '-h'],
      ['help', 'check'],
      ['--help', 'check'],
      ['check', '--wrong', '--help', '/nonexistent'],
    ])
      expect((await sallyport(...args)).stdout).toBe(stdout);
  });

  it('of everything names each command', async () => {
    for (const args of [['--help'], ['-h'], ['help']]) {
      const { code, stdout } = await sallyport(...args);
      expect(code).toBe(0);
      for (const { name, summary } of allCommands)
        expect(stdout).toMatch(new RegExp(`^  ${name} +${summary.slice(0, 20)}`, 'm'));
    }
  });

  it('behind -- belongs to the command that is run', async () => {
    const { stdout } = await sallyport('run', '--', 'printf', '%s\\n', '--help');
    expect(stdout).toBe('--help\n');
  });

  it('has a command for every program of the entry point, and no other', () => {
    const main = readFileSync(join(projectRoot, 'src', 'main.ts'), 'utf8');
    const programs = [...main.matchAll(/^ {2}'?([\w-]+)'?: \(\) => import\(/gm)].map(([, name]) => name);
    // Started by the platform, and by nobody else.
    const started = programs.filter((name) => name !== 'box-host');
    expect(started.toSorted()).toEqual(allCommands.map(({ name }) => name).toSorted());
  });
});

it.each(['--version', '-V', 'version'])('%s prints the version of the package', async (arg) => {
  const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  const { code, stdout } = await sallyport(arg);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(new RegExp(`^sallyport ${version} \\(Node \\d+`)),
  ]);
});

it('an option before the command is not taken for a command', async () => {
  const { code, stderr } = await sallyport('--verbose', 'proxy');
  expect(code).toBe(2);
  expect(stderr).toMatch(/^sallyport: unknown option --verbose: begin with a command\n/);
});

it('a note of a usage ends at the end of a sentence', () => {
  for (const { name, notes = [] } of allCommands as readonly CommandDeclaration[])
    for (const note of notes) expect(`${name}: ${note}`).toMatch(/\.$/);
});

it('an unknown command is named, with the nearest', async () => {
  const { code, stdout, stderr } = await sallyport('chekc', 'rules.json');
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^sallyport: unknown command 'chekc': did you mean check\?\n/);
});
