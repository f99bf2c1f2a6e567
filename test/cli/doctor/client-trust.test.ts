import { X509Certificate } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { checkClients } from '../../../src/cli/doctor/client-trust.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { createTestAuthority } from '../../support/test-authority.ts';

const pem = createTestAuthority('Proxy').certificatePem;
const { fingerprint256 } = new X509Certificate(pem);

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
  const findings = await checkClients(fingerprint256, env);
  expect(findings.find(({ check }) => check === 'CA in curl')).toMatchObject({ state });
  expect(findings.find(({ check }) => check === 'CA in git')).toMatchObject({ state: 'skipped' });
});

it('a file that cannot be read is named with its variable', async () => {
  await using scratch = await createScratch();
  const env = { PATH: await install(scratch, 'git'), GIT_SSL_CAINFO: '/nonexistent.pem' };
  const findings = await checkClients(fingerprint256, env);
  expect(findings.find(({ check }) => check === 'CA in git')).toMatchObject({
    state: 'failed',
    text: '/nonexistent.pem (GIT_SSL_CAINFO) cannot be read: ENOENT',
    cure: expect.stringContaining('sallyport env'),
  });
});

it('the proxy variable is named without its value', async () => {
  const findings = await checkClients(fingerprint256, { PATH: '', HTTPS_PROXY: 'http://x:c4n4ry@h:1' });
  expect(JSON.stringify(findings)).not.toContain('c4n4ry');
});
