import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { findLibraries, parseLibraries } from '../../src/box-host/program-libraries.ts';

const printed = `\tlinux-vdso.so.1 (0x00007f4f23e11000)
\tlibstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f4f23a00000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f4f2381e000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f4f23e13000)
`;

it('the libraries of a program have the names that it asks for, and one loads the others', () => {
  expect(parseLibraries(printed)).toEqual({
    files: {
      'libstdc++.so.6': '/lib/x86_64-linux-gnu/libstdc++.so.6',
      'libc.so.6': '/lib/x86_64-linux-gnu/libc.so.6',
      'ld-linux-x86-64.so.2': '/lib64/ld-linux-x86-64.so.2',
    },
    loader: 'ld-linux-x86-64.so.2',
  });
});

it.each([
  ['a library is missing', '\tlibx.so.1 => not found\n', 'libx.so.1'],
  ['the program needs none', '\tstatically linked\n', 'nothing that loads'],
])('is an error where %s', (_, text, message) => {
  expect(() => parseLibraries(text)).toThrow(message);
});

it('are found for this Node', async () => {
  const { files, loader } = await findLibraries(process.execPath);
  expect(Object.keys(files)).toContain(loader);
  expect(Object.values(files).every((path) => existsSync(path))).toBe(true);
});
