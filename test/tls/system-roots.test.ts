// Node's own reading of the same files is the reference: whatever OpenSSL finds must be found, and nothing else.
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { certificateBlocks, toCertificatePem } from '../../src/tls/pem.ts';
import { readRoots, systemRoots } from '../../src/tls/system-roots.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { projectRoot, runToEnd } from '../support/spawned-process.ts';

const pems = Array.from({ length: 4 }, () => createCertificateAuthority().certificatePem);
const [one = '', two = '', three = '', four = ''] = pems;
const blocks = (...texts: readonly string[]): readonly string[] =>
  texts.flatMap(certificateBlocks).toSorted();

const GARBAGE = toCertificatePem(Buffer.concat([Buffer.from([0x30, 0x82, 0x02, 0x00]), Buffer.alloc(512)]));

/** As `c_rehash` leaves it: files, and links named by the hash of the subject. */
async function createDirectory(scratch: Scratch): Promise<string> {
  await scratch.write('bundle.crt', one + two);
  await scratch.write('one.pem', `# a comment\n${one}`);
  await scratch.write('README', 'no certificate');
  await scratch.write('12345678.1', three);
  await symlink('one.pem', join(scratch.path, '0a1b2c3d.0'));
  await symlink('missing.pem', join(scratch.path, 'deadbeef.0'));
  return scratch.path;
}

describe('readRoots', () => {
  it('reads each certificate of the file and of the directory once', async () => {
    await using scratch = await createScratch();
    await using elsewhere = await createScratch();
    const file = await elsewhere.write('cert.pem', four + one);
    const found = readRoots({ file, directory: await createDirectory(scratch) });
    expect(found?.toSorted()).toEqual(blocks(one, two, three, four));
  });

  it('follows a link out of the directory, also one that is named by a hash', async () => {
    await using scratch = await createScratch();
    await using elsewhere = await createScratch();
    await symlink(await elsewhere.write('two.pem', two), join(scratch.path, 'two.pem'));
    await symlink(await elsewhere.write('three.pem', three), join(scratch.path, '0a1b2c3d.0'));
    expect(readRoots({ file: '', directory: scratch.path })?.toSorted()).toEqual(blocks(two, three));
  });

  it.each([
    { what: 'a root that is commented out', text: one + two.replaceAll(/^/gm, '# ') },
    { what: 'a damaged root', text: one + two.replace('MII', 'MIX') + three },
    { what: 'a block that is no certificate', text: one + GARBAGE + two },
    { what: 'a blank line in a root', text: one + two.split('\n').toSpliced(3, 0, '').join('\n') },
    { what: 'a root with trust settings', text: one.replaceAll('CERTIFICATE', 'TRUSTED CERTIFICATE') },
  ])('leaves a file with $what to OpenSSL', async ({ text }) => {
    await using scratch = await createScratch();
    expect(readRoots({ file: await scratch.write('roots.pem', text), directory: '' })).toBeUndefined();
  });

  it('finds nothing where nothing can be read', () => {
    expect(readRoots({ file: '/nonexistent', directory: '/nonexistent' })).toEqual([]);
    expect(readRoots({ file: '/dev/zero', directory: '/dev/null' })).toEqual([]);
  });
});

describe('systemRoots', () => {
  it('are those that OpenSSL finds on this machine', () => {
    const system = getCACertificates('system');
    const expected = system.length > 0 ? system : getCACertificates('bundled');
    expect(blocks(...systemRoots())).toEqual([...new Set(blocks(...expected))]);
  });

  it.each(['SSL_CERT_FILE', 'SSL_CERT_DIR'])('are those that OpenSSL finds with %s', async (name) => {
    await using scratch = await createScratch();
    await using elsewhere = await createScratch();
    const directory = await createDirectory(scratch);
    const program = await elsewhere.write(
      'roots.ts',
      `
      import { getCACertificates } from 'node:tls';
      import { certificateBlocks, toCertificatePem } from ${JSON.stringify(join(projectRoot, 'src/tls/pem.ts'))};
      import { systemRoots } from ${JSON.stringify(join(projectRoot, 'src/tls/system-roots.ts'))};
      const blocks = (texts) => [...new Set(texts.flatMap(certificateBlocks))].toSorted().join();
      console.log(systemRoots().length, blocks(systemRoots()) === blocks(getCACertificates('system')));
    `,
    );
    const nowhere = { SSL_CERT_FILE: '/nonexistent', SSL_CERT_DIR: '/nonexistent' };
    const value = name === 'SSL_CERT_DIR' ? directory : join(directory, 'bundle.crt');
    const { stdout } = await runToEnd(process.execPath, [program], { env: { ...nowhere, [name]: value } });
    expect(stdout).toBe(name === 'SSL_CERT_DIR' ? '3 true\n' : '2 true\n');
  });

  it('are the bundled ones where the file is /dev/null', async () => {
    await using scratch = await createScratch();
    const program = await scratch.write(
      'roots.ts',
      `
      import { getCACertificates } from 'node:tls';
      import { systemRoots } from ${JSON.stringify(join(projectRoot, 'src/tls/system-roots.ts'))};
      console.log(systemRoots().length === getCACertificates('bundled').length);
    `,
    );
    const env = { SSL_CERT_FILE: '/dev/null', SSL_CERT_DIR: '/nonexistent' };
    expect(await runToEnd(process.execPath, [program], { env })).toMatchObject({ code: 0, stdout: 'true\n' });
  });

  it('are not read where a named pipe would block, and the pipe is named', async () => {
    await using scratch = await createScratch();
    const pipe = join(scratch.path, 'pipe.pem');
    expect((await runToEnd('mkfifo', [pipe])).code).toBe(0);
    const program = await scratch.write(
      'roots.ts',
      `import { systemRoots } from ${JSON.stringify(join(projectRoot, 'src/tls/system-roots.ts'))}; systemRoots();`,
    );
    const env = { SSL_CERT_FILE: pipe, SSL_CERT_DIR: '/nonexistent' };
    const { code, stderr } = await runToEnd(process.execPath, [program], { env });
    expect(code).toBe(1);
    expect(stderr).toContain(`InputError: the trusted roots cannot be read: ${pipe} is not a regular file`);
  });
});
