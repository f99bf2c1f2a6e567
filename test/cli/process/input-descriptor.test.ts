// What a parent hands over on a descriptor: read once, within bounds, and closed.
import { fstatSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readInputDescriptor } from '../../../src/cli/process/input-descriptor.ts';
import { createScratch } from '../../support/scratch.ts';

const input = { variable: 'INPUT', maxBytes: 100_000 };

async function open(content: string | Buffer): Promise<string> {
  await using scratch = await createScratch();
  const file = join(scratch.path, 'input');
  await writeFile(file, content);
  return String(openSync(file, 'r'));
}

describe('the descriptor that a variable names', () => {
  it('is read to its end and closed', async () => {
    const text = 'é'.repeat(50_000);
    const INPUT = await open(text);
    expect(readInputDescriptor({ INPUT }, input)).toBe(text);
    expect(() => fstatSync(Number(INPUT))).toThrow('EBADF');
  });

  it('is not read where the variable is not set', () => {
    expect(readInputDescriptor({}, input)).toBeUndefined();
    expect(readInputDescriptor({ INPUT: '' }, input)).toBeUndefined();
  });

  it.each(['0', '2', 'x', '-3', '99999', '3 '])('is refused as %j', (INPUT) => {
    expect(() => readInputDescriptor({ INPUT }, input)).toThrow('INPUT must be the number of a descriptor');
  });

  it('must be open, and have text within the limit', async () => {
    expect(() => readInputDescriptor({ INPUT: '9999' }, input)).toThrow(
      'INPUT: descriptor 9999 cannot be read (EBADF)',
    );
    const long = await open('a'.repeat(100_001));
    expect(() => readInputDescriptor({ INPUT: long }, input)).toThrow('INPUT: more than 100000 bytes were');
    const bytes = await open(Buffer.of(0xff));
    expect(() => readInputDescriptor({ INPUT: bytes }, input)).toThrow('INPUT: what was read is not UTF-8');
  });
});
