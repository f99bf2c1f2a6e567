import { expect, it } from 'vitest';
import { formatUsage } from '../../../src/cli/command/usage.ts';

it('a usage shows options with their defaults and variables, examples and exit codes', () => {
  const usage = formatUsage({
    name: 'try',
    summary: 'try it',
    operands: 'FILE',
    options: {
      listen: {
        type: 'string',
        value: 'HOST:PORT',
        text: 'address',
        variable: 'SALLYPORT_LISTEN',
        fallback: 'a:1',
      },
      json: { type: 'boolean', text: 'print JSON' },
    },
    notes: ['A note.'],
    examples: ['sallyport try x'],
    exitCodes: [['0', 'done']],
  });
  expect(usage).toBe(`usage: sallyport try [OPTIONS] FILE

Try it.

Options:
  --listen HOST:PORT  address (default a:1; SALLYPORT_LISTEN)
  --json              print JSON
  -h, --help          print this text

A note.

Examples:
  sallyport try x

Exit codes:
  0  done
`);
});
