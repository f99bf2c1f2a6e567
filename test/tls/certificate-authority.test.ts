import { createHash, X509Certificate } from 'node:crypto';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type CertificateAuthorityFiles,
  createCertificateAuthority,
  loadCertificateAuthority,
} from '../../src/tls/certificate-authority.ts';
import { parseCertificates } from '../../src/tls/pem.ts';
import { createScratch } from '../support/scratch.ts';
import { runProgram } from './external-program.ts';

const DAY_MS = 864e5;
const subject = { host: 'api.good.test', kind: 'name' } as const;

describe('a created CA', () => {
  const now = new Date('2026-11-20T10:00:00Z');
  const ca = createCertificateAuthority({ now });

  it('may sign leaves and CRLs, nothing below a leaf, and carries its key identifier', async () => {
    const output = await runProgram(
      'openssl',
      ['x509', '-noout', '-ext', 'basicConstraints,keyUsage,subjectKeyIdentifier'],
      { input: ca.certificatePem },
    );
    expect(output.replaceAll(/ *\n +/g, ' ')).toMatch(
      /^X509v3 Basic Constraints: critical CA:TRUE, pathlen:0\nX509v3 Key Usage: critical Certificate Sign, CRL Sign\nX509v3 Subject Key Identifier: [0-9A-F:]{59} ?\n$/,
    );
  });

  it('lives for ten years and was born a day ago', () => {
    const { validFromDate, validToDate } = new X509Certificate(ca.certificatePem);
    expect(validFromDate).toEqual(new Date('2026-11-19T10:00:00Z'));
    expect(validToDate).toEqual(new Date('2036-11-18T10:00:00Z'));
  });

  it('has a name of its own, or the name it is given', () => {
    const { subject: name, issuer } = new X509Certificate(ca.certificatePem);
    expect(name).toMatch(/^CN=Sallyport CA [0-9a-f]{8}$/);
    expect(issuer).toBe(name);
    expect(new X509Certificate(createCertificateAuthority().certificatePem).subject).not.toBe(name);
    const named = createCertificateAuthority({ commonName: 'Prüfstelle Süd' });
    expect(new X509Certificate(named.certificatePem).subject).toBe('CN=Prüfstelle Süd');
  });

  it('is P-256, or RSA of 2048 bits where that is requested', () => {
    const details = (keyType: 'p256' | 'rsa'): unknown =>
      new X509Certificate(createCertificateAuthority({ keyType }).certificatePem).publicKey
        .asymmetricKeyDetails;
    expect(details('p256')).toEqual({ namedCurve: 'prime256v1' });
    expect(details('rsa')).toMatchObject({ modulusLength: 2048 });
  });

  it('reports its fingerprint and key pin as openssl computes them', async () => {
    const input = ca.certificatePem;
    const fingerprint = await runProgram('openssl', ['x509', '-noout', '-fingerprint', '-sha256'], { input });
    expect(fingerprint.trim().split('=')[1]).toBe(ca.fingerprintSha256);
    const publicKey = await runProgram('openssl', ['x509', '-noout', '-pubkey'], { input });
    const spki = Buffer.from(publicKey.replaceAll(/-----.*-----/g, ''), 'base64');
    expect(createHash('sha256').update(spki).digest('base64')).toBe(ca.spkiSha256);
  });
});

describe('an issued leaf', () => {
  const now = new Date('2026-11-20T10:00:00Z');
  const lifeOf = (chainPem: string): [Date, Date] => {
    const { validFromDate, validToDate } = new X509Certificate(chainPem);
    return [validFromDate, validToDate];
  };

  it('is backdated by an hour and lives for 72', () => {
    const leaf = createCertificateAuthority({ now }).issueLeaf(subject, now);
    expect(leaf.notAfter).toEqual(new Date('2026-11-23T09:00:00Z'));
    expect(lifeOf(leaf.chainPem)).toEqual([new Date('2026-11-20T09:00:00Z'), leaf.notAfter]);
  });

  it('never starts before its CA nor ends after it', () => {
    const ca = createCertificateAuthority({ now });
    const authority = new X509Certificate(ca.certificatePem);
    const early = ca.issueLeaf(subject, authority.validFromDate);
    expect(lifeOf(early.chainPem)[0]).toEqual(authority.validFromDate);
    const late = ca.issueLeaf(subject, new Date(authority.validToDate.getTime() - DAY_MS));
    expect(lifeOf(late.chainPem)[1]).toEqual(authority.validToDate);
    expect(late.notAfter).toEqual(authority.validToDate);
  });

  it('comes with its CA certificate and with the one leaf key of the process', () => {
    const ca = createCertificateAuthority();
    const [one, other] = [ca.issueLeaf(subject, now), createCertificateAuthority().issueLeaf(subject, now)];
    const chain = parseCertificates(one.chainPem);
    expect(chain).toEqual([expect.anything(), new X509Certificate(ca.certificatePem)]);
    expect(one.keyPem).toBe(other.keyPem);
    expect(one.keyPem).not.toBe(ca.privateKeyPem);
  });
});

describe('a CA that openssl made', () => {
  it.each([
    {
      what: 'P-384 under a name of several parts',
      key: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384'],
      name: '/C=CH/O=Prüf AG/CN=Prüfstelle',
    },
    { what: 'RSA under a name of one part', key: ['-newkey', 'rsa:2048'], name: '/O=Acme' },
  ])('signs leaves that verify: $what', async ({ key, name }) => {
    await using scratch = await createScratch();
    const files = filesIn(scratch.path);
    await runProgram('openssl', [
      ...['req', '-x509', '-nodes', '-utf8', '-days', '30', '-subj', name, ...key],
      ...[
        '-addext',
        'keyUsage=critical,keyCertSign',
        '-keyout',
        files.keyFile,
        '-out',
        files.certificateFile,
      ],
    ]);
    await chmod(files.keyFile, 0o600);
    const ca = await loadCertificateAuthority(files);
    const leafFile = await scratch.write('leaf.pem', ca.issueLeaf(subject, new Date()).chainPem);
    const output = await runProgram('openssl', [
      ...[
        'verify',
        '-x509_strict',
        '-verify_hostname',
        subject.host,
        '-CAfile',
        files.certificateFile,
        leafFile,
      ],
    ]);
    expect(output).toBe(`${leafFile}: OK\n`);
  });

  it('sends the intermediates that follow it in its file', async () => {
    await using scratch = await createScratch();
    const files = filesIn(scratch.path);
    const at = (name: string): string => join(scratch.path, name);
    const p256 = ['-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
    const asCa = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign'];
    const underRoot = ['-x509', '-CA', at('root.pem'), '-CAkey', at('root.key')];
    const underMiddle = ['-x509', '-CA', at('middle.pem'), '-CAkey', at('middle.key')];
    for (const [name, issuer] of [
      ['root', ['-x509']],
      ['middle', underRoot],
      ['ca', underMiddle],
    ] as const) {
      const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.pem`)];
      await runProgram('openssl', ['req', '-subj', `/CN=${name}`, ...p256, ...asCa, ...issuer, ...files]);
    }
    await writeFile(
      at('ca.pem'),
      (await readFile(at('ca.pem'), 'utf8')) + (await readFile(at('middle.pem'), 'utf8')),
    );
    await chmod(files.keyFile, 0o600);
    const chain = await scratch.write(
      'chain.pem',
      (await loadCertificateAuthority(files)).issueLeaf(subject, new Date()).chainPem,
    );
    const output = await runProgram('openssl', [
      ...['verify', '-x509_strict', '-CAfile', at('root.pem'), '-untrusted', chain, chain],
    ]);
    expect(output).toBe(`${chain}: OK\n`);
  });
});

function filesIn(directory: string): CertificateAuthorityFiles {
  return { certificateFile: join(directory, 'ca.pem'), keyFile: join(directory, 'ca.key') };
}
