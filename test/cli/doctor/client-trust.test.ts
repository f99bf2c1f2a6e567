import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { encodeTruststore } from '../../../src/cli/client/truststore.ts';
import { checkClients } from '../../../src/cli/doctor/client-trust.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { createTestAuthority } from '../../support/test-authority.ts';

const pem = createTestAuthority('Proxy').certificatePem;
const ca = new X509Certificate(pem);
const otherCa = new X509Certificate(createTestAuthority('Other').certificatePem);

/** A PATH with nothing but these programs. */
async function install(scratch: Scratch, ...programs: readonly string[]): Promise<string> {
  await mkdir(join(scratch.path, 'bin'));
  for (const program of programs) await chmod(await scratch.write(`bin/${program}`, '#!/bin/sh\n'), 0o755);
  return join(scratch.path, 'bin');
}

it.each([
  ['trusts a file that contains the CA', 'CURL_CA_BUNDLE', pem, 'ok'],
  [
    'does not trust a file without it',
    'CURL_CA_BUNDLE',
    createTestAuthority('Other').certificatePem,
    'failed',
  ],
  ['does not trust it without its variable', 'OTHER', pem, 'failed'],
])('curl %s', async (_, variable, text, state) => {
  await using scratch = await createScratch();
  const env = { PATH: await install(scratch, 'curl'), [variable]: await scratch.write('bundle.pem', text) };
  const findings = await checkClients(ca, env);
  expect(findings.find(({ check }) => check === 'CA in curl')).toMatchObject({ state });
  expect(findings.find(({ check }) => check === 'CA in git')).toMatchObject({ state: 'skipped' });
});

it('a file that cannot be read is named with its variable', async () => {
  await using scratch = await createScratch();
  const env = { PATH: await install(scratch, 'git'), GIT_SSL_CAINFO: '/nonexistent.pem' };
  const findings = await checkClients(ca, env);
  expect(findings.find(({ check }) => check === 'CA in git')).toMatchObject({
    state: 'failed',
    text: '/nonexistent.pem (GIT_SSL_CAINFO) cannot be read: ENOENT',
    cure: expect.stringContaining('sallyport env'),
  });
});

it('the proxy variable is named without its value', async () => {
  const findings = await checkClients(ca, { PATH: '', HTTPS_PROXY: 'http://x:c4n4ry@h:1' });
  expect(JSON.stringify(findings)).not.toContain('c4n4ry');
});

it.each([
  ['its own truststore', 'lib/security/cacerts', ca.raw, 'ok'],
  ['that of its JDK 8', 'jre/lib/security/cacerts', ca.raw, 'ok'],
  ['one with another CA', 'lib/security/cacerts', otherCa.raw, 'failed'],
  ['none', 'cacerts', ca.raw, 'failed'],
])('java without the option reads %s', async (_, name, certificate, state) => {
  await using scratch = await createScratch();
  const home = join(scratch.path, 'jdk');
  await mkdir(join(home, 'bin'), { recursive: true });
  await mkdir(dirname(join(home, name)), { recursive: true });
  await writeFile(join(home, name), encodeTruststore([certificate]));
  await chmod(await scratch.write('jdk/bin/java', '#!/bin/sh\n'), 0o755);
  await mkdir(join(scratch.path, 'bin'));
  await symlink(join(home, 'bin', 'java'), join(scratch.path, 'bin', 'java'));
  const findings = await checkClients(ca, { PATH: join(scratch.path, 'bin') });
  expect(findings.find(({ check }) => check === 'CA in java')).toMatchObject({ state });
});

it('java reads the first of its truststores only', async () => {
  await using scratch = await createScratch();
  const bin = await install(scratch, 'java');
  const security = join(scratch.path, 'lib', 'security');
  await mkdir(security, { recursive: true });
  await writeFile(join(security, 'jssecacerts'), encodeTruststore([otherCa.raw]));
  await writeFile(join(security, 'cacerts'), encodeTruststore([ca.raw]));
  const findings = await checkClients(ca, { PATH: bin });
  expect(findings.find(({ check }) => check === 'CA in java')).toMatchObject({
    state: 'failed',
    text: expect.stringContaining(`${security}/jssecacerts lacks it`),
  });
});
