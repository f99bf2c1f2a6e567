import { describe, expect, it } from 'vitest';
import {
  type CommandDeclaration,
  parseCommandLine,
  usageLine,
} from '../../../src/cli/command/declaration.ts';

const command = {
  name: 'try',
  summary: 'try it',
  operands: 'FILE...',
  options: {
    listen: { type: 'string', value: 'HOST:PORT', text: 'address' },
    key: { type: 'string', multiple: true, value: 'FILE', text: 'keys' },
    json: { type: 'boolean', text: 'JSON' },
  },
  examples: [],
  exitCodes: [],
} as const satisfies CommandDeclaration;

const { operands: _, ...alone } = command;
const behind = { ...command, operands: 'CMD', afterDashes: true } as const satisfies CommandDeclaration;

describe('a command line', () => {
  it('is parsed by its declaration', () => {
    const args = ['--listen', 'a:1', '--key', 'x', 'file', '--key=y', '--json', '-', '--', '--listen'];
    expect(parseCommandLine(command, args)).toEqual({
      values: { listen: 'a:1', key: ['x', 'y'], json: true },
      operands: ['file', '-', '--listen'],
    });
  });

  it('may have a lone dash as a value', () => {
    expect(parseCommandLine(command, ['--listen', '-']).values).toEqual({ listen: '-' });
  });

  it.each<[string, CommandDeclaration, readonly string[], RegExp]>([
    ['an unknown option', command, ['--lisen=a'], /^unknown option --lisen: did you mean --listen\?$/],
    ['an option like none', command, ['--verbose'], /^unknown option --verbose: .*`sallyport try --help`/],
    ['a property of objects', command, ['--constructor'], /^unknown option --constructor/],
    ['an option without its value', command, ['--listen'], /^--listen needs a value: --listen HOST:PORT$/],
    ['an empty value', command, ['--listen='], /^--listen needs a value/],
    [
      'an option in place of a value',
      command,
      ['--listen', '--json'],
      /^--listen needs a value, and an option follows/,
    ],
    ['a value that is not taken', command, ['--json=yes'], /^--json takes no value/],
    ['an operand of a command without', alone, ['file'], /^unexpected argument file: try takes options only/],
    [
      'an operand before the dashes',
      behind,
      ['curl'],
      /^unexpected argument curl: put -- before the command/,
    ],
  ])('with %s is refused', (_name, declaration, args, message) => {
    expect(() => parseCommandLine(declaration, args)).toThrow(message);
  });

  it('is refused without a value that could be a secret', () => {
    const secret = 'sk-0123456789abcdefghijklmnopqrstuvwxyz';
    for (const args of [[secret], [`--token=${secret}`], [`--json=${secret}`]])
      expect(() => parseCommandLine(alone, args)).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining(secret) }),
      );
  });
});

it('the usage line shows what follows the options', () => {
  expect([command, alone, behind].map(usageLine)).toEqual([
    'sallyport try [OPTIONS] FILE...',
    'sallyport try [OPTIONS]',
    'sallyport try [OPTIONS] -- CMD',
  ]);
});
