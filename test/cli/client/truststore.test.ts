import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { writeFile } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import forge from 'node-forge';
import { describe, expect, it } from 'vitest';
import { encodeTruststore } from '../../../src/cli/client/truststore.ts';
import { systemRoots } from '../../../src/tls/system-roots.ts';
import { createScratch } from '../../support/scratch.ts';
import { runToEnd } from '../../support/spawned-process.ts';
import { createTestAuthority } from '../../support/test-authority.ts';

const hasKeytool = spawnSync('keytool', ['-help'], { stdio: 'ignore' }).error === undefined;

const names = ['First', 'Second'];
const certificates = names.map((name) => new X509Certificate(createTestAuthority(name).certificatePem).raw);

/** 2.16.840.1.113894.746875.1.1 = { anyExtendedKeyUsage }, by which Java knows a trusted certificate. */
const TRUSTED = Buffer.from('3016060c6086480186f966adca7b010131060604551d2500', 'hex');

/** What node-forge reads there, strictly by DER. */
function readBags(file: Buffer): readonly { readonly alias: unknown; readonly der: Buffer }[] {
  const asn1 = forge.asn1.fromDer(file.toString('latin1'), true);
  const { safeContents } = forge.pkcs12.pkcs12FromAsn1(asn1, true);
  return safeContents.flatMap(({ safeBags }) =>
    safeBags.map((bag) => {
      const certificate = bag.cert ? forge.pki.certificateToAsn1(bag.cert) : bag.asn1;
      return {
        alias: bag.attributes.friendlyName?.[0],
        der: Buffer.from(forge.asn1.toDer(certificate).getBytes(), 'latin1'),
      };
    }),
  );
}

describe('a truststore', () => {
  it('holds the certificates in order, each with a name of its own', () => {
    expect(readBags(encodeTruststore(certificates))).toEqual(
      certificates.map((der, i) => ({ alias: `sallyport-${i + 1}`, der })),
    );
  });

  it('marks each certificate as trusted', () => {
    const parts = encodeTruststore(certificates).toString('latin1').split(TRUSTED.toString('latin1'));
    expect(parts).toHaveLength(certificates.length + 1);
  });

  it('may be empty', () => expect(readBags(encodeTruststore([]))).toEqual([]));

  it.runIf(hasKeytool)('of all system roots is read by Java, without a password', async () => {
    await using scratch = await createScratch();
    const file = join(scratch.path, 'store.p12');
    const roots = systemRoots().map((pem) => new X509Certificate(pem).raw);
    await writeFile(file, encodeTruststore([...certificates, ...roots]));
    const { code, stdout } = await runToEnd('keytool', ['-list', '-storetype', 'PKCS12', '-keystore', file], {
      input: '\n',
    });
    expect(code).toBe(0);
    expect(stdout.match(/trustedCertEntry/g)).toHaveLength(certificates.length + roots.length);
  });
});
