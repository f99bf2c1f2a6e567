import { chmod, mkdir, readFile, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { noProgramFiles, writeProgramFiles } from '../../../src/cli/client/program-files.ts';
import { type Program, programsWithout } from '../../../src/cli/client/programs.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { createTestAuthority } from '../../support/test-authority.ts';

const bundlePem = createTestAuthority('Ours').certificatePem;
const BUNDLE = 'ca-bundle-0123456789abcdef.pem';

function writeFor(
  directory: string,
  caller: NodeJS.ProcessEnv = {},
  wanted: ReadonlySet<Program> = programsWithout(undefined),
): ReturnType<typeof writeProgramFiles> {
  return writeProgramFiles({ bundleFile: join(directory, BUNDLE), bundlePem, wanted, caller });
}

async function systemWgetrc(scratch: Scratch, text: string, mode = 0o644): Promise<string> {
  const file = await scratch.write('system-wgetrc', text);
  await chmod(file, mode);
  return file;
}

describe('the files of programs', () => {
  it('name the bundle, lie beside it, and are readable by other users', async () => {
    await using scratch = await createScratch();
    const bundle = join(scratch.path, BUNDLE);
    const { files, warnings } = await writeFor(scratch.path);
    expect(warnings).toEqual([]);
    const wgetrc = await readFile(files.wgetrc ?? '', 'utf8');
    expect(wgetrc.endsWith(`ca_certificate = ${bundle}\n`)).toBe(true);
    expect(await readFile(files.aptConfig ?? '', 'utf8')).toBe(`Acquire::https::CAInfo "${bundle}";\n`);
    const [settings = ''] = await readdir(files.phpDirectory ?? '');
    expect(basename(files.phpDirectory ?? '')).toBe('php-ca-bundle-0123456789abcdef');
    expect(await readFile(join(files.phpDirectory ?? '', settings), 'utf8')).toBe(
      `curl.cainfo="${bundle}"\nopenssl.cafile="${bundle}"\n`,
    );
    expect(settings).toMatch(/^ca-[0-9a-f]{16}\.ini$/);
    for (const file of [files.wgetrc, files.aptConfig, files.truststore, files.agentPreload]) {
      expect(dirname(file ?? '')).toBe(scratch.path);
      expect((await stat(file ?? '')).mode & 0o777).toBe(0o644);
    }
    expect((await stat(files.phpDirectory ?? '')).mode & 0o777).toBe(0o755);
  });

  it('are the same when nothing has changed', async () => {
    await using scratch = await createScratch();
    expect(await writeFor(scratch.path)).toEqual(await writeFor(scratch.path));
  });

  it('are not written for programs that are left out', async () => {
    await using scratch = await createScratch();
    expect(await writeFor(scratch.path, {}, new Set())).toEqual({ files: noProgramFiles, warnings: [] });
    expect(await readdir(scratch.path)).toEqual([]);
  });

  it.each(['a b', 'a"b', "a'b", 'a;b', 'a:b', 'a\\b', 'a$b', 'a\nb'])(
    'are not written into a directory that they could not name: %j',
    async (name) => {
      await using scratch = await createScratch();
      const directory = join(scratch.path, name);
      await mkdir(directory);
      const { files, warnings } = await writeFor(directory);
      expect(files).toEqual(noProgramFiles);
      expect(warnings).toEqual([expect.stringContaining('their variables are not set')]);
      expect(await readdir(directory)).toEqual([]);
    },
  );
});

describe('the settings of wget', () => {
  it('are those of the system, with the bundle', async () => {
    await using scratch = await createScratch();
    const SYSTEM_WGETRC = await systemWgetrc(scratch, 'passive_ftp = on');
    const { files, warnings } = await writeFor(scratch.path, { SYSTEM_WGETRC });
    const text = await readFile(files.wgetrc ?? '', 'utf8');
    expect([text, warnings]).toEqual([
      `passive_ftp = on\nca_certificate = ${join(scratch.path, BUNDLE)}\n`,
      [],
    ]);
    const again = await writeFor(scratch.path, { SYSTEM_WGETRC: files.wgetrc });
    expect(again.files.wgetrc).toBe(files.wgetrc);
  });

  it('are not copied where other users cannot read them', async () => {
    await using scratch = await createScratch();
    const SYSTEM_WGETRC = await systemWgetrc(scratch, 'http_password = secret\n', 0o600);
    const { files, warnings } = await writeFor(scratch.path, { SYSTEM_WGETRC });
    expect(files.wgetrc).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(/^wget: other users cannot read .*system-wgetrc/)]);
  });

  it.each([
    'Proxy-Password = secret',
    'header=Authorization: Bearer secret',
    'https_proxy = http://me:secret@p.test',
    ' load_cookies = /home/me/cookies',
  ])('of the caller are not copied where they have a credential: %s', async (line) => {
    await using scratch = await createScratch();
    const SYSTEM_WGETRC = await systemWgetrc(scratch, `passive_ftp = on\n${line}\n`);
    const { files, warnings } = await writeFor(scratch.path, { SYSTEM_WGETRC });
    expect(files.wgetrc).toBeUndefined();
    expect(warnings).toEqual([
      expect.stringMatching(/system-wgetrc has a password, a header, cookies or a login/),
    ]);
  });

  it('are the bundle alone where the file is gone, and a warning says so', async () => {
    await using scratch = await createScratch();
    const { files, warnings } = await writeFor(scratch.path, { SYSTEM_WGETRC: '/nonexistent' });
    expect(await readFile(files.wgetrc ?? '', 'utf8')).toBe(
      `ca_certificate = ${join(scratch.path, BUNDLE)}\n`,
    );
    expect(warnings).toEqual([expect.stringMatching(/^wget: \/nonexistent cannot be read \(ENOENT\)/)]);
  });
});
