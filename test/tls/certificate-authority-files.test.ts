import { generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { chmod, chown, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { signRoot } from '../../src/tls/certificate.ts';
import {
  type CertificateAuthorityFiles,
  createCertificateAuthority,
  loadCertificateAuthority,
  loadOrCreateCertificateAuthority,
} from '../../src/tls/certificate-authority.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';

const DAY_MS = 864e5;
const subject = { host: 'api.good.test', kind: 'name' } as const;

describe('the pair of files', () => {
  it('is made once, the key for its owner alone, in directories that are made for it', async () => {
    await using scratch = await createScratch();
    const files = filesIn(join(scratch.path, 'state', 'tls'));
    const before = process.umask(0);
    const first = await loadOrCreateCertificateAuthority(files).finally(() => process.umask(before));
    expect(first.created).toBe(true);
    expect(await modesOf(files.keyFile, files.certificateFile)).toEqual([0o600, 0o644]);
    expect(await modesOf(join(scratch.path, 'state'), join(scratch.path, 'state', 'tls'))).toEqual([
      0o700, 0o700,
    ]);
    expect(await readdir(join(scratch.path, 'state', 'tls'))).toEqual(['ca.key', 'ca.pem']);

    const second = await loadOrCreateCertificateAuthority(files);
    expect(second.created).toBe(false);
    expect(second.ca.fingerprintSha256).toBe(first.ca.fingerprintSha256);
    expect(Object.keys(second.ca)).not.toContain('privateKeyPem');
    expect(Object.keys(first.ca)).not.toContain('privateKeyPem');
  });

  it('is one pair, whichever process wins, when many start at once', async () => {
    await using scratch = await createScratch();
    const files = filesIn(scratch.path);
    const all = await Promise.all(Array.from({ length: 12 }, () => loadOrCreateCertificateAuthority(files)));
    expect(all.filter(({ created }) => created).length).toBe(1);
    expect(new Set(all.map(({ ca }) => ca.fingerprintSha256)).size).toBe(1);
    expect(await readdir(scratch.path)).toEqual(['ca.key', 'ca.pem']);
  });

  it('may be RSA', async () => {
    await using scratch = await createScratch();
    await loadOrCreateCertificateAuthority(filesIn(scratch.path), { keyType: 'rsa' });
    const { ca } = await loadOrCreateCertificateAuthority(filesIn(scratch.path));
    expect(new X509Certificate(ca.certificateDer).publicKey.asymmetricKeyType).toBe('rsa');
  });

  it.each([
    { lost: 'ca.pem', kept: 'ca.key' },
    { lost: 'ca.key', kept: 'ca.pem' },
  ])('without $lost is refused, and $kept stays as it is', async ({ lost, kept }) => {
    await using scratch = await createScratch();
    const files = await storedPair(scratch, createCertificateAuthority());
    const content = await readFile(join(scratch.path, kept), 'utf8');
    await rm(join(scratch.path, lost));
    await expect(loadOrCreateCertificateAuthority(files)).rejects.toThrow(
      `${join(scratch.path, lost)}: cannot be opened (ENOENT). Use a certificate and its key that this user can read`,
    );
    expect(await readdir(scratch.path)).toEqual([kept]);
    expect(await readFile(join(scratch.path, kept), 'utf8')).toBe(content);
  });

  it('behind a link to nowhere is refused, not written through', async () => {
    await using scratch = await createScratch();
    const files = filesIn(scratch.path);
    await symlink(join(scratch.path, 'nowhere'), files.keyFile);
    await expect(loadOrCreateCertificateAuthority(files)).rejects.toThrow('cannot be opened (ENOENT)');
    expect(await readdir(scratch.path)).toEqual(['ca.key']);
  });

  it('behind links is loaded, as a mounted Kubernetes secret is', async () => {
    await using scratch = await createScratch();
    const real = join(scratch.path, '..data');
    await mkdir(real);
    const ca = createCertificateAuthority();
    await writeFile(join(real, 'ca.pem'), ca.certificatePem);
    await writeFile(join(real, 'ca.key'), ca.privateKeyPem, { mode: 0o400 });
    await symlink('..data/ca.pem', join(scratch.path, 'ca.pem'));
    await symlink('..data/ca.key', join(scratch.path, 'ca.key'));
    const loaded = await loadCertificateAuthority(filesIn(scratch.path));
    expect(loaded.fingerprintSha256).toBe(ca.fingerprintSha256);
  });
});

describe('a key file that others can reach is rejected', () => {
  it.each([0o640, 0o620, 0o604, 0o602, 0o660, 0o610, 0o666, 0o440])('with mode %o', async (mode) => {
    await using scratch = await createScratch();
    const files = await storedPair(scratch, createCertificateAuthority());
    await chmod(files.keyFile, mode);
    await expect(loadOrCreateCertificateAuthority(files)).rejects.toThrow(
      `${files.keyFile}: mode 0${mode.toString(8)} gives other users access to the key. chmod 0600 ${files.keyFile}`,
    );
  });

  it.skipIf(process.getuid?.() !== 0)('when it belongs to another user, whom the agent may be', async () => {
    await using scratch = await createScratch();
    const files = await storedPair(scratch, createCertificateAuthority());
    await chown(files.keyFile, 12_345, 0);
    await expect(loadCertificateAuthority(files)).rejects.toThrow(
      `${files.keyFile}: the key belongs to uid 12345, but this process runs as uid 0. chown 0 ${files.keyFile}`,
    );
  });
});

describe('a pair that could not serve is rejected', () => {
  const good = createCertificateAuthority();
  const { chainPem, keyPem } = good.issueLeaf(subject, new Date());
  const yearsAgo = (years: number): Date => new Date(Date.now() - years * 365 * DAY_MS);
  const rows: readonly {
    what: string;
    certificate: string;
    key: string;
    blames: 'ca.pem' | 'ca.key';
    says: string;
  }[] = [
    { what: 'a leaf', certificate: chainPem, key: keyPem, blames: 'ca.pem', says: 'not a CA certificate' },
    {
      what: 'the key of another CA',
      certificate: good.certificatePem,
      key: createCertificateAuthority().privateKeyPem,
      blames: 'ca.key',
      says: 'not the key of',
    },
    {
      what: 'the key of another kind',
      certificate: good.certificatePem,
      key: createCertificateAuthority({ keyType: 'rsa' }).privateKeyPem,
      blames: 'ca.key',
      says: 'not the key of',
    },
    {
      what: 'an expired CA',
      ...pairOf(createCertificateAuthority({ now: yearsAgo(11) })),
      blames: 'ca.pem',
      says: 'outside its validity',
    },
    {
      what: 'a CA of the day after tomorrow',
      ...pairOf(createCertificateAuthority({ now: yearsAgo(-0.01) })),
      blames: 'ca.pem',
      says: 'outside its validity',
    },
    {
      what: 'an empty certificate file',
      certificate: '',
      key: good.privateKeyPem,
      blames: 'ca.pem',
      says: 'no certificate that can be read',
    },
    {
      what: 'a certificate in DER',
      certificate: good.certificateDer.toString('latin1'),
      key: good.privateKeyPem,
      blames: 'ca.pem',
      says: 'no certificate that can be read',
    },
    {
      what: 'a certificate that is cut off',
      certificate: good.certificatePem.slice(0, 200),
      key: good.privateKeyPem,
      blames: 'ca.pem',
      says: 'no certificate that can be read',
    },
    {
      what: 'an intermediate that is cut off',
      certificate: good.certificatePem + chainPem.slice(0, 200),
      key: good.privateKeyPem,
      blames: 'ca.pem',
      says: 'no certificate that can be read',
    },
    {
      what: 'an empty key file',
      certificate: good.certificatePem,
      key: '',
      blames: 'ca.key',
      says: 'no private key that can be read',
    },
    {
      what: 'a certificate in the place of the key',
      certificate: good.certificatePem,
      key: good.certificatePem,
      blames: 'ca.key',
      says: 'no private key that can be read',
    },
    {
      what: 'a key behind a passphrase',
      certificate: good.certificatePem,
      key: encrypted(),
      blames: 'ca.key',
      says: 'no private key that can be read',
    },
    {
      what: 'RSA of 1024 bits',
      ...selfSigned(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey),
      blames: 'ca.key',
      says: 'a kind of key that TLS clients do not accept',
    },
    {
      what: 'a curve that TLS does not know',
      ...selfSigned(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey),
      blames: 'ca.key',
      says: 'a kind of key that TLS clients do not accept',
    },
  ];

  it.each(rows)('$what', async ({ certificate, key, blames, says }) => {
    await using scratch = await createScratch();
    const files = filesIn(scratch.path);
    await writeFile(files.certificateFile, certificate, 'latin1');
    await writeFile(files.keyFile, key, { mode: 0o600 });
    const refused = await loadOrCreateCertificateAuthority(files).catch(String);
    expect(refused).toContain(`Error: ${join(scratch.path, blames)}: ${says}`);
    expect(refused).toMatch(/\. [A-Z][^.]*\.$/); // a second sentence: how to correct it
    expect(refused).not.toContain(key.split('\n')[1] || 'PRIVATE KEY-----M');
  });

  function pairOf(ca: { certificatePem: string; privateKeyPem: string }): {
    certificate: string;
    key: string;
  } {
    return { certificate: ca.certificatePem, key: ca.privateKeyPem };
  }

  function encrypted(): string {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' });
  }

  function selfSigned(privateKey: KeyObject): {
    certificate: string;
    key: string;
  } {
    const life = { notBefore: yearsAgo(1), notAfter: yearsAgo(-1) };
    const certificate = new X509Certificate(signRoot('Own', privateKey, life));
    return { certificate: certificate.toString(), key: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
  }
});

function filesIn(directory: string): CertificateAuthorityFiles {
  return { certificateFile: join(directory, 'ca.pem'), keyFile: join(directory, 'ca.key') };
}

async function storedPair(
  scratch: Scratch,
  ca: { readonly certificatePem: string; readonly privateKeyPem: string },
): Promise<CertificateAuthorityFiles> {
  const files = filesIn(scratch.path);
  await writeFile(files.certificateFile, ca.certificatePem);
  await writeFile(files.keyFile, ca.privateKeyPem, { mode: 0o600 });
  return files;
}

async function modesOf(...paths: string[]): Promise<number[]> {
  return Promise.all(paths.map(async (path) => (await stat(path)).mode & 0o777));
}
