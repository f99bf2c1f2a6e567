// The options of the benchmark and its folders: what is wrong is refused with one line that names the option, before anything
// starts, and files of the user are never touched.
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseOptions } from '../../bench/support/options.ts';
import { DEFAULT_FOLDER, prepareFolder, prepareReportFolder } from '../../bench/support/output-folder.ts';
import { UsageError, describeError } from '../../bench/support/usage-error.ts';
import { type Scratch, createScratch } from '../support/scratch.ts';
import { projectRoot, runToEnd } from '../support/spawned-process.ts';

describe('the options', () => {
  it.each([
    ['--rounds x', '--rounds must be a whole number of at least 1, not x'],
    ['--rounds 0', '--rounds must be a whole number of at least 1, not 0'],
    ['--rounds -3', '--rounds must be a whole number of at least 1, not -3'],
    ['--rounds 0.5', '--rounds must be a whole number of at least 1, not 0.5'],
    ['--seconds abc', '--seconds must be a positive number, not abc'],
    ['--nosuch', 'unknown option --nosuch; the options are --json'],
    ['-x', 'unknown option -x'],
    ['keep-alive', 'unexpected argument keep-alive'],
    ['--json=1', '--json has no value, not 1'],
    ['--target nonsense --rules package.json', '--target must be an https URL, not nonsense'],
    ['--target http://a.test --rules package.json', '--target must be an https URL'],
    ['--target https://a.test', '--target needs --rules FILE'],
    ['--target https://a.test --rules /nonexistent', 'but /nonexistent is not a file'],
    ['--target https://a.test --rules package.json --json', '--json has no effect with --target'],
    ['--target https://a.test --rules package.json --report', '--report has no effect with --target'],
    ['--rules package.json', '--rules needs --target URL'],
    [
      '--package /nonexistent',
      '--package must be the folder of a built package, but /nonexistent has no bin',
    ],
    ['--only nosuch', '--only: there is no question nosuch; the questions are start'],
    ['--only=', '--only needs a value: questions'],
    ['--only', '--only needs a value'],
    ['--only --quick', '--only needs a value'],
    ['--peers nosuch', '--peers: there is no peer nosuch; the peers are nginx'],
    ['--quick --full', '--quick and --full exclude each other'],
    ['--output reports', '--output needs --report'],
  ])('%s is refused', (args, message) => {
    const parse = (): unknown => parseOptions(args.split(' '));
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(message);
  });

  it('have the values of the level that is selected', () => {
    expect(parseOptions([])).toMatchObject({ level: 'default', seconds: 70, effort: { rounds: 9 } });
    expect(parseOptions(['--quick', '--seconds', '5', '--rounds', '3', '--report'])).toMatchObject({
      level: 'quick',
      seconds: 5,
      report: DEFAULT_FOLDER,
      effort: { rounds: 3, durationMs: 200 },
    });
  });

  it('that are wrong end the benchmark with one line and exit code 2', async () => {
    const bench = join(projectRoot, 'bench', 'injection.ts');
    const { code, stdout, stderr } = await runToEnd(process.execPath, [bench, '--rounds', 'x']);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: 'bench: --rounds must be a whole number of at least 1, not x\n',
    });
  });
});

describe('an error', () => {
  it('that was reported is one line, and a bug keeps its stack', () => {
    expect(describeError(new Error('a build failed:\n  reason'))).toBe('bench: a build failed: | reason');
    expect(describeError(new TypeError('x is undefined'))).toMatch(/^TypeError: x is undefined\n +at /);
  });
});

describe('the folder of a report', () => {
  let scratch: Scratch;
  beforeAll(async () => void (scratch = await createScratch()));
  afterAll(() => scratch[Symbol.asyncDispose]());

  it('is created, with the folders above it', async () => {
    const folder = join(scratch.path, 'a', 'b');
    prepareReportFolder(folder);
    expect(await readdir(folder)).toEqual([]);
    prepareReportFolder(folder);
  });

  it.each([
    ['with files of the user', 'notes.txt', 'mine'],
    ['with a raw.json of another program', 'raw.json', '{"command":"other","ratios":{}}'],
    ['with a raw.json that is not JSON', 'raw.json', 'mine'],
  ])('%s is refused and not touched', async (title, name, content) => {
    const folder = join(scratch.path, title.replaceAll(' ', '-'));
    await mkdir(folder);
    await writeFile(join(folder, name), content);
    expect(() => prepareReportFolder(folder)).toThrow('no raw.json of this benchmark');
    expect(await readdir(folder)).toEqual([name]);
    expect(await readFile(join(folder, name), 'utf8')).toBe(content);
  });

  it('with a report of this benchmark is accepted', async () => {
    const folder = join(scratch.path, 'ours');
    await mkdir(folder);
    await writeFile(join(folder, 'raw.json'), '{"command":"npm run bench -- --report","ratios":{}}');
    await writeFile(join(folder, 'README.md'), '');
    prepareReportFolder(folder);
  });

  it.each(['/proc/nope', '/proc/nope/below', '/dev/null/below'])('%s is refused', (folder) => {
    expect(() => prepareFolder('--profile', folder)).toThrow(
      `--profile must be a folder that can be written`,
    );
  });

  it('that is a file is refused', async () => {
    const file = join(scratch.path, 'file');
    await writeFile(file, 'mine');
    expect(() => prepareFolder('--output', file)).toThrow('--output must be a folder');
    expect(await readFile(file, 'utf8')).toBe('mine');
  });
});
