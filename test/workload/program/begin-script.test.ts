// The shell that becomes a program, against a starter that responds, one that is gone, and one that was cut off.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import {
  BEGIN_DESCRIPTOR,
  BEGIN_SCRIPT,
  encodeBeginning,
} from '../../../src/workload/program/begin-script.ts';

const PATH = '/usr/bin:/bin';

async function begin(reply: string | undefined, command: readonly string[]) {
  const child = spawn('/bin/sh', ['-c', BEGIN_SCRIPT, 'sh', ...command], {
    env: { PATH, LC_ALL: 'C', INHERITED: 'yes' },
    stdio: ['ignore', 'pipe', 'pipe', 'ignore', 'pipe'],
  });
  const channel = child.stdio[BEGIN_DESCRIPTOR] as unknown as Duplex;
  channel.on('error', () => undefined);
  const printed = text(child.stdout as NonNullable<typeof child.stdout>);
  if (reply === undefined) channel.destroy();
  else {
    const [report] = await once(channel, 'data');
    expect(String(report)).toBe('.');
    channel.end(reply);
  }
  const [code] = await once(child, 'exit');
  return { code, output: await printed };
}

describe('a program begins', () => {
  it('with its variables as they were given, in its directory', async () => {
    const values = { PATH, ONE: `'; exit 9; '`, TWO: '$HOME `id` \\ "\n\nlast', EMPTY: '' };
    const reply = encodeBeginning({ environment: values, cwd: '/usr' });
    const { code, output } = await begin(reply, ['env', '-0']);
    const found = Object.fromEntries(
      output
        .split('\0')
        .filter(Boolean)
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
    expect(code).toBe(0);
    expect(found).toMatchObject({ ...values, PWD: '/usr' });
    expect(found).not.toHaveProperty('LC_ALL');
  });

  it('as the same process, with its arguments', async () => {
    const { output } = await begin(encodeBeginning({ environment: { PATH }, cwd: '/' }), [
      'printf',
      '%s|',
      'a b',
      `it's`,
      '',
    ]);
    expect(output).toBe(`a b|it's||`);
  });
});

describe('a program does not begin', () => {
  it('when its starter is gone', async () =>
    expect((await begin(undefined, ['echo', 'began'])).output).toBe(''));

  it.each([0, 20, 60])('when what its starter wrote was cut off after %i characters', async (length) => {
    const reply = encodeBeginning({ environment: { PATH, SOME: 'x'.repeat(100) }, cwd: '/' }).slice(
      0,
      length,
    );
    const { code, output } = await begin(reply, ['echo', 'began']);
    expect(output).toBe('');
    expect(code).not.toBe(0);
  });

  it('without its last line', async () => {
    const whole = encodeBeginning({ environment: { PATH }, cwd: '/' });
    expect(await begin(whole.replace(/began=yes\n$/, ''), ['echo', 'began'])).toEqual({
      code: 125,
      output: '',
    });
  });

  it('in a directory that it cannot enter', async () => {
    const reply = encodeBeginning({ environment: { PATH }, cwd: '/absent' });
    expect(await begin(reply, ['echo', 'began'])).toEqual({ code: 126, output: '' });
  });
});
