import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeTrustFiles } from '../../../src/cli/client/trust-files.ts';
import { parseCertificates } from '../../../src/tls/pem.ts';
import { systemRoots } from '../../../src/tls/system-roots.ts';
import { createScratch } from '../../support/scratch.ts';
import { createTestAuthority } from '../../support/test-authority.ts';

const [ours, first, second] = ['Ours', 'First', 'Second'].map(
  (name) => createTestAuthority(name).certificatePem,
);

async function namesIn(file: string): Promise<string[]> {
  const certificates = parseCertificates(await readFile(file, 'utf8'));
  if (typeof certificates === 'number') throw new Error(`certificate ${certificates} cannot be read`);
  return certificates.map(({ subject }) => subject.replace(/^CN=/, ''));
}

describe('the files of CA certificates', () => {
  it('hold the proxy’s, the system’s and the caller’s certificates, each once', async () => {
    await using scratch = await createScratch();
    const both = await scratch.write('both.pem', `# text\n${first}\n${second?.replaceAll('\n', '\r\n')}`);
    const caller = {
      SSL_CERT_FILE: await scratch.write('first.pem', first),
      PIP_CERT: both,
      REQUESTS_CA_BUNDLE: both,
      CURL_CA_BUNDLE: '',
      NODE_EXTRA_CA_CERTS: await scratch.write('second.pem', second),
    };
    const trust = await writeTrustFiles(join(scratch.path, 'new'), { caPem: ours ?? '', caller });
    const bundle = await namesIn(trust.bundleFile);
    expect([bundle[0], ...bundle.slice(-2)]).toEqual(['Ours', 'First', 'Second']);
    expect(systemRoots().length).toBeGreaterThan(20);
    expect(bundle).toHaveLength(new Set(systemRoots().map((pem) => pem.trim())).size + 3);
    expect(await namesIn(trust.extraFile)).toEqual(['Ours', 'Second']);
    expect(trust.warnings).toEqual([]);
    expect(trust.bundlePem).toBe(await readFile(trust.bundleFile, 'utf8'));
  });

  it('hold no key that is in a file beside a certificate', async () => {
    await using scratch = await createScratch();
    const key = '-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----\n';
    const caller = { SSL_CERT_FILE: await scratch.write('pair.pem', `${key}${first}`) };
    const trust = await writeTrustFiles(scratch.path, { caPem: ours ?? '', caller });
    expect(await readFile(trust.bundleFile, 'utf8')).not.toContain('PRIVATE');
    expect(await namesIn(trust.bundleFile)).toContain('First');
  });

  it('are written without an unreadable file of the caller, and a warning names its variable', async () => {
    await using scratch = await createScratch();
    const caller = { CURL_CA_BUNDLE: '/nonexistent/ca.pem', REQUESTS_CA_BUNDLE: scratch.path };
    const { warnings } = await writeTrustFiles(scratch.path, { caPem: ours ?? '', caller });
    expect(warnings).toEqual([
      expect.stringMatching(/CURL_CA_BUNDLE: \/nonexistent\/ca\.pem .*ENOENT/),
      expect.stringMatching(/REQUESTS_CA_BUNDLE: .*EISDIR/),
    ]);
  });

  it('are reused when nothing has changed, but not if the content is not ours', async () => {
    await using scratch = await createScratch();
    const write = () => writeTrustFiles(scratch.path, { caPem: ours ?? '', caller: {} });
    const once = await write();
    expect(await write()).toEqual(once);
    await writeFile(once.extraFile, first ?? '');
    await expect(write()).rejects.toThrow(/ca-extra-\w+\.pem has other content/);
  });
});
