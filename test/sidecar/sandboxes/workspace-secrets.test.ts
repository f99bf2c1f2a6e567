import { chmodSync, fstatSync, mkdirSync, openSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  loadWorkspaceSecrets,
  type WorkspaceSecrets,
} from '../../../src/sidecar/sandboxes/workspace-secrets.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

const CANARY = 'canary-c2f8a1';
const KIB = 1_024;

let scratch: Scratch;
let counter = 0;
beforeAll(async () => {
  scratch = await createScratch();
});
afterAll(() => scratch[Symbol.asyncDispose]());

function fileOf(content: string | Buffer, mode = 0o600): string {
  const path = join(scratch.path, `file-${counter++}`);
  writeFileSync(path, content, { mode });
  return path;
}

function directoryOf(files: Readonly<Record<string, string | Buffer>>): string {
  const path = join(scratch.path, `directory-${counter++}`);
  mkdirSync(path);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content);
  return path;
}

/** Each secret as text, by asking whether it equals what is expected. */
function holds(secrets: WorkspaceSecrets, expected: Readonly<Record<string, string>>): void {
  expect(secrets.names).toEqual(Object.keys(expected).toSorted());
  for (const [name, value] of Object.entries(expected))
    expect([name, secrets.lookup(name)?.equals(value)]).toEqual([name, true]);
}

describe('a directory', () => {
  it('gives one secret a file, less one line end', () => {
    const directory = directoryOf({ A: 'a', B: 'b\n', C: 'c\r\n', D: 'd\n\n', E: ' e ', F: '\uFEFFf' });
    holds(loadWorkspaceSecrets({ directory }, {}), { A: 'a', B: 'b', C: 'c', D: 'd\n', E: ' e ', F: 'f' });
  });

  it('is read as Kubernetes mounts it: links into a dated directory, by way of ..data', () => {
    const directory = directoryOf({});
    mkdirSync(join(directory, '..2026_01_01'));
    writeFileSync(join(directory, '..2026_01_01', 'TOKEN'), 'value');
    symlinkSync('..2026_01_01', join(directory, '..data'));
    symlinkSync(join('..data', 'TOKEN'), join(directory, 'TOKEN'));
    const secrets = loadWorkspaceSecrets({ directory }, {});
    holds(secrets, { TOKEN: 'value' });
    expect(secrets.warnings).toEqual([]);
  });

  it('skips what is no secret, and says so', () => {
    const directory = directoryOf({ A: 'a', 'tls.key': 'x', '1B': 'x', '.hidden': 'x' });
    mkdirSync(join(directory, 'nested'));
    const secrets = loadWorkspaceSecrets({ directory }, {});
    holds(secrets, { A: 'a' });
    const rule = 'its name must have only letters, digits and underscores, and no digit at the beginning';
    expect(secrets.warnings).toEqual([
      `${directory}/1B is skipped: ${rule}`,
      `${directory}/nested is skipped: it is not a file`,
      `${directory}/tls.key is skipped: ${rule}`,
    ]);
  });
});

it('a NAME=value file gives its secrets, and a warning when others may read it', () => {
  holds(loadWorkspaceSecrets({ file: fileOf('A=1\nexport B="2"\n') }, {}), { A: '1', B: '2' });
  const open = fileOf('A=1');
  chmodSync(open, 0o644);
  expect(loadWorkspaceSecrets({ file: open }, {}).warnings).toEqual([
    `${open} can be read by other users: chmod 600 it`,
  ]);
});

it.each([
  ['JSON', '{"A":"1","B":"2"}'],
  ['lines', 'A=1\nB=2'],
])('a descriptor gives %s, and is closed', (_, content) => {
  const fd = openSync(fileOf(content), 'r');
  holds(loadWorkspaceSecrets({ fd }, {}), { A: '1', B: '2' });
  expect(() => fstatSync(fd)).toThrow('EBADF');
});

it('a variable _FILE gives what the file holds', () => {
  const env = { SALLYPORT_SECRET_A_FILE: fileOf('a\n'), OTHER_FILE: '/nowhere' };
  holds(loadWorkspaceSecrets({}, env), { A: 'a' });
});

it('without sources there are none', () => {
  const secrets = loadWorkspaceSecrets({}, { PATH: '/bin' });
  holds(secrets, {});
  expect(secrets.lookup('__proto__')).toBeUndefined();
});

it('of several sources the first wins: descriptor, _FILE, directory, file', () => {
  const of = (names: string, value: string): string =>
    names
      .split('')
      .map((n) => `${n}=${value}`)
      .join('\n');
  const fd = openSync(fileOf(of('A', 'descriptor')), 'r');
  const variable = fileOf('variable');
  const directory = directoryOf({ A: 'directory', B: 'directory', C: 'directory' });
  const file = fileOf(of('ABCD', 'file'));
  const env = { SALLYPORT_SECRET_A_FILE: variable, SALLYPORT_SECRET_B_FILE: variable };
  const secrets = loadWorkspaceSecrets({ fd, directory, file }, env);
  holds(secrets, { A: 'descriptor', B: 'variable', C: 'directory', D: 'file' });
  expect(secrets.warnings).toContain(`B of ${directory}/B is not used: SALLYPORT_SECRET_B_FILE sets it too`);
  expect(secrets.warnings).toHaveLength(6);
});

it('reload reads files and directories again; what was given once stays', () => {
  const fd = openSync(fileOf('A=once'), 'r');
  const directory = directoryOf({ B: 'before' });
  const before = loadWorkspaceSecrets({ fd, directory }, {});
  writeFileSync(join(directory, 'B'), 'after');
  const after = before.reload();
  holds(before, { A: 'once', B: 'before' });
  holds(after, { A: 'once', B: 'after' });
  writeFileSync(join(directory, 'B'), '');
  expect(() => after.reload()).toThrow(`${directory}/B: B is empty`);
});

const names = (count: number): string => Array.from({ length: count }, (_, i) => `N${i}=v`).join('\n');

describe('bounds', () => {
  it('a secret of 64 KiB is read from a file and from lines', () => {
    const value = 'x'.repeat(64 * KIB);
    const directory = directoryOf({ A: `${value}\r\n` });
    holds(loadWorkspaceSecrets({ directory, file: fileOf(`B=${value}`) }, {}), { A: value, B: value });
  });

  it('1,000 secrets are read', () => {
    expect(loadWorkspaceSecrets({ file: fileOf(names(1_000)) }, {}).names).toHaveLength(1_000);
  });
});

describe('the start fails with the location, never the value', () => {
  const rows: readonly [string, () => WorkspaceSecrets, RegExp][] = [
    [
      'an empty file',
      () => loadWorkspaceSecrets({ directory: directoryOf({ A: '\n' }) }, {}),
      /\/A: A is empty$/,
    ],
    ['an empty value', () => loadWorkspaceSecrets({ file: fileOf('A=""') }, {}), /:1: A is empty$/],
    [
      'a secret over 64 KiB in a file of its own',
      () => loadWorkspaceSecrets({ directory: directoryOf({ A: CANARY.padEnd(64 * KIB + 1) }) }, {}),
      /\/A: A is larger than 65536 bytes$/,
    ],
    [
      'a secret over 64 KiB in lines, counted in bytes',
      () => loadWorkspaceSecrets({ file: fileOf(`A=${CANARY}${'é'.repeat(33_000)}`) }, {}),
      /:1: A is larger than 65536 bytes$/,
    ],
    [
      '1,001 secrets',
      () => loadWorkspaceSecrets({ file: fileOf(names(1_001)) }, {}),
      /^1001 secrets are set; at most 1000/,
    ],
    [
      'a file without end',
      () => loadWorkspaceSecrets({}, { SALLYPORT_SECRET_A_FILE: '/dev/zero' }),
      /^SALLYPORT_SECRET_A_FILE is larger than \d+ bytes$/,
    ],
    [
      'what is not UTF-8',
      () => loadWorkspaceSecrets({ directory: directoryOf({ A: Buffer.from([0xff]) }) }, {}),
      /\/A is not UTF-8 text$/,
    ],
    [
      'no such file',
      () => loadWorkspaceSecrets({ file: '/nowhere/secrets' }, {}),
      /^\/nowhere\/secrets cannot be read: ENOENT$/,
    ],
    [
      'no such directory',
      () => loadWorkspaceSecrets({ directory: '/nowhere' }, {}),
      /^\/nowhere cannot be read: ENOENT$/,
    ],
    [
      'a descriptor that is not open',
      () => loadWorkspaceSecrets({ fd: 9_999 }, {}),
      /^descriptor 9999 cannot be read: EBADF$/,
    ],
    [
      'the secret itself where its path should be',
      () => loadWorkspaceSecrets({}, { SALLYPORT_SECRET_A_FILE: CANARY }),
      /^SALLYPORT_SECRET_A_FILE cannot be read: ENOENT$/,
    ],
    [
      'a variable without a name',
      () => loadWorkspaceSecrets({}, { SALLYPORT_SECRET__FILE: fileOf(CANARY) }),
      /^SALLYPORT_SECRET__FILE: the name of a secret must have only letters/,
    ],
    [
      'a secret that is still in the environment',
      () => loadWorkspaceSecrets({}, { SALLYPORT_SECRET_A: CANARY }),
      /^SALLYPORT_SECRET_A is still in the environment of this process$/,
    ],
  ];

  it.each(rows)('%s', (_, load, message) => {
    const error = thrownBy(load);
    expect(error.message).toMatch(message);
    expect(`${error.stack}${JSON.stringify(error)}${String(error.cause)}`).not.toContain(CANARY);
  });
});

function thrownBy(work: () => unknown): Error {
  try {
    work();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('expected an Error');
}
