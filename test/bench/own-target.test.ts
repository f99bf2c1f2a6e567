// `npm run bench -- --target`: what is measured is an injected request, and everything else ends with one line that says what
// is wrong and on which side.
// @module-tag long
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPackage } from '../support/program-package.ts';
import { type RecordingOrigin, createOrigin, jsonResponse, response } from '../support/recording-origin.ts';
import { type Scratch, createScratch } from '../support/scratch.ts';
import { type Finished, projectRoot, runToEnd } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';

const HOST = 'api.localhost';
const authority = createTestAuthority();

describe('--target', () => {
  let scratch: Scratch;
  let origin: RecordingOrigin;

  beforeAll(async () => {
    scratch = await createScratch();
    await createPackage(scratch.path);
    await writeFile(join(scratch.path, 'ca.pem'), authority.certificatePem);
    const header = { name: 'Authorization', type: 'opaque', value: 'Bearer right' };
    const rules = [{ name: 'own', match_hosts: [HOST], match_paths: ['/v1/*'], headers: [header] }];
    await writeFile(join(scratch.path, 'rules.json'), JSON.stringify({ rules }), { mode: 0o600 });
    origin = await createOrigin({
      tls: { authority, names: [HOST, 'other.localhost'] },
      async respond({ request, send }) {
        await send(request.target === '/v1/denied' ? response(401, []) : jsonResponse({ ok: true }));
      },
    });
  });
  afterAll(async () => {
    await origin[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  });

  type Trust = { readonly client: boolean; readonly proxy: boolean };

  function measure(url: string, trust: Trust = { client: true, proxy: true }): Promise<Finished> {
    const caFile = join(scratch.path, 'ca.pem');
    const bench = join(projectRoot, 'bench', 'injection.ts');
    const rules = join(scratch.path, 'rules.json');
    const args = [bench, '--tiny', '--package', scratch.path, '--target', url, '--rules', rules];
    return runToEnd(process.execPath, args, {
      env: {
        ...(trust.client ? { NODE_EXTRA_CA_CERTS: caFile } : {}),
        ...(trust.proxy ? { SALLYPORT_UPSTREAM_CA: caFile } : {}),
      },
    });
  }

  it('measures a host with a rule', async () => {
    const { code, stdout, stderr } = await measure(`https://${HOST}:${origin.port}/v1/a`);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('Sallyport adds');
    expect(stdout).toContain('statuses: direct 200, sallyport 200');
  }, 60_000);

  it.each([
    ['a host that no rule matches', 'other.localhost', '/v1/a', 'the proxy injected nothing (outcome '],
    ['a path that no rule matches', HOST, '/a', 'the proxy injected nothing (outcome forwarded'],
    [
      'a credential that the host does not accept',
      HOST,
      '/v1/denied',
      'responded with 401: it does not accept',
    ],
  ])(
    'refuses %s',
    async (_, host, path, message) => {
      expectOneLine(await measure(`https://${host}:${origin.port}${path}`), message);
    },
    60_000,
  );

  it.each([
    [{ client: false, proxy: true }, 'the client does not trust its certificate'],
    [{ client: true, proxy: false }, 'with 502 upstream_untrusted: the TLS certificate'],
  ])(
    'names the side that does not trust the certificate: %j',
    async (trust, message) => {
      const finished = await measure(`https://${HOST}:${origin.port}/v1/a`, trust);
      expectOneLine(finished, message);
      expect(finished.stderr).toContain('SALLYPORT_UPSTREAM_CA');
    },
    60_000,
  );

  it('names the address of a server that is down', async () => {
    const server = await createOrigin();
    await server[Symbol.asyncDispose]();
    const finished = await measure(`https://${HOST}:${server.port}/v1/a`);
    expectOneLine(finished, `no response from ${HOST} port ${server.port}: connect ECONNREFUSED 127.0.0.1`);
  }, 60_000);

  function expectOneLine({ code, stdout, stderr }: Finished, message: string): void {
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^bench: [^\n]*\n$/);
    expect(stderr).toContain(message);
  }
});
