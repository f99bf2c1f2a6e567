// `sallyport doctor`, before and after the environment of a client is set.
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { clockFinding } from '../../src/cli/doctor.ts';
import { readAuthority } from '../../src/cli/ca/certificate-file.ts';
import { type Reply, askProbe } from '../../src/cli/doctor/proxied-request.ts';
import { bypassFinding, requestFindings } from '../../src/cli/doctor/url-checks.ts';
import { parseAskedUrl } from '../../src/sidecar/explanation.ts';
import { createOrigin } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { type Finished, program, runToEnd, spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';

const doctor = (args: readonly string[], env: Record<string, string> = {}): Promise<Finished> =>
  runToEnd(process.execPath, [program, 'doctor', ...args], { env });

const TOKEN = 'c4n4ry-0123456789abcdef';
const headers = [{ name: 'X-Key', type: 'plaintext', value: 'k' }];

describe('doctor', () => {
  it('finds nothing wrong where clients are set up, with a request through the proxy', async () => {
    const authority = createTestAuthority();
    await using origin = await createOrigin({ tls: { authority, names: ['api.localhost'] } });
    await using scratch = await createScratch();
    const env = { SALLYPORT_AUTH_TOKEN_FILE: await scratch.write('token', TOKEN) };
    await using sallyport = await spawnSallyport({
      proxyConfig: { rules: [{ match_hosts: ['api.localhost'], headers }] },
      upstreamCaPem: authority.certificatePem,
      env,
    });
    const ready = await sallyport.process.record(({ msg }) => msg === 'ready');
    const admin = String(ready['admin']).replace('http://', '');
    const state = dirname(dirname(sallyport.caFile));
    const flags = ['--state-dir', state, '--listen', `127.0.0.1:${sallyport.port}`, '--admin-listen', admin];
    const { caFile } = sallyport;
    const client = {
      ...env,
      HTTPS_PROXY: `http://sallyport:${TOKEN}@127.0.0.1:${sallyport.port}`,
      ...{
        CURL_CA_BUNDLE: caFile,
        NODE_EXTRA_CA_CERTS: caFile,
        REQUESTS_CA_BUNDLE: caFile,
        GIT_SSL_CAINFO: caFile,
      },
      JAVA_TOOL_OPTIONS: '-Djavax.net.ssl.trustStore=/x',
    };
    const url = `https://api.localhost:${origin.port}/`;
    const { stdout, stderr } = await doctor([...flags, '--json', url], client);
    const { findings } = JSON.parse(stdout) as { findings: { check: string; state: string }[] };
    // The Node of the machine may be old, which is a finding of its own.
    expect(findings.filter(({ check, state }) => state === 'failed' && check !== 'Node version')).toEqual([]);
    expect(findings.find(({ check }) => check === 'request')).toMatchObject({ state: 'ok' });
    expect(stdout + stderr).not.toContain(TOKEN);
  });

  it('names what fails, each with a cure, and ends with code 1', async () => {
    await using scratch = await createScratch();
    await mkdir(join(scratch.path, 'public'));
    await scratch.write('public/ca.pem', createTestAuthority('Proxy').certificatePem);
    const { code, stdout } = await doctor(['--state-dir', scratch.path, '--listen', '127.0.0.1:1']);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^FAILED {3}proxy: 127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\)\n +-> start `sallyport proxy`/m,
    );
    expect(stdout).toMatch(/^FAILED {3}HTTPS_PROXY: is not set/m);
    expect(stdout).toMatch(/^FAILED {3}CA in \w+: .*\n +-> run eval/m);
    const options = `--listen 127.0.0.1:1 --state-dir ${scratch.path}`;
    expect(stdout).toContain(`run eval "$(sallyport env ${options})" in the shell of the client`);
    const failures = stdout.match(/^FAILED/gm)?.length;
    expect(stdout.match(/^ +-> /gm)).toHaveLength(failures ?? 0);
  });

  it('names a token that cannot be read, beside what else it finds', async () => {
    await using scratch = await createScratch();
    await mkdir(join(scratch.path, 'public'));
    await scratch.write('public/ca.pem', createTestAuthority('Proxy').certificatePem);
    const rules = await scratch.write('rules.json', { rules: [] });
    const { code, stdout } = await doctor(
      ['--state-dir', scratch.path, '--proxy-config', rules, 'https://api.localhost/'],
      { SALLYPORT_AUTH_TOKEN_FILE: join(scratch.path, 'none'), SALLYPORT_LISTEN: '127.0.0.1:1' },
    );
    expect(code).toBe(1);
    expect(stdout).toMatch(/^ok {7}rules: tunnelled/m);
    expect(stdout).toMatch(/^FAILED {3}request: .*none.*ENOENT.*\n +-> set auth\.token_file/m);
  });

  it('names a request that the rules refuse', async () => {
    await using scratch = await createScratch();
    const rules = await scratch.write('rules.json', { access_control: { deny_list: ['denied.localhost'] } });
    const { stdout } = await doctor([
      '--state-dir',
      scratch.path,
      '--proxy-config',
      rules,
      'https://denied.localhost/',
    ]);
    expect(stdout).toMatch(/^FAILED {3}rules: denied\.localhost:443 is denied by the entry/m);
  });

  it.each([
    ['', 'ok'],
    ['other.test', 'ok'],
    ['localhost,.example.com', 'failed'],
    ['*', 'failed'],
  ])('judges NO_PROXY=%j', (list, state) => {
    const asked = parseAskedUrl('https://api.example.com/', 'HEAD');
    if (typeof asked === 'string') throw new Error(asked);
    expect(bypassFinding(asked, { no_proxy: list })).toMatchObject({ state });
  });

  it.each([
    [{ failure: 'ECONNRESET' }, false, ['failed request']],
    [{ failure: 'SELF_SIGNED_CERT_IN_CHAIN' }, false, ['failed request']],
    [{ error: 'callback_failed' }, true, ['failed callback']],
    [{ error: 'upstream_untrusted' }, true, ['ok callback', 'failed egress']],
    [{ error: 'dns_failed' }, false, ['failed egress']],
    [{ error: 'proxy_auth_required' }, false, ['failed request']],
    [{ error: 'a_code_of_tomorrow' }, false, ['failed request']],
    [{ date: 'Thu, 01 Jan 1970 00:05:01 GMT' }, false, ['ok egress', 'ok request', 'failed clock']],
    [{ date: 'Thu, 01 Jan 1970 00:05:00 GMT' }, true, ['ok callback', 'ok egress', 'ok request']],
  ])('of a request with %j, callback %s, finds %j', (reply, usesCallback, expected) => {
    const whole = 'failure' in reply ? reply : { status: 200, error: undefined, date: undefined, ...reply };
    const findings = requestFindings(whole as Reply, usesCallback, 0);
    expect(findings.map(({ state, check }) => `${state} ${check}`)).toEqual(expected);
    for (const { state, cure } of findings) expect(cure !== undefined).toBe(state === 'failed');
  });

  it.each([
    ['upstream_closed', 'upstream_closed'],
    ['\u009b2Jupstream_closed', undefined],
    ['x'.repeat(65), undefined],
  ])('takes no text of an upstream for the code of a refusal: %j', async (text, error) => {
    await using server = createServer((_, response) => response.setHeader('X-Sallyport-Error', text).end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await askProbe({ host: '127.0.0.1', port }, '/')).toMatchObject({ status: 200, error });
  });

  it.each([
    [-1, 'failed', /in the future/],
    [1, 'ok', /valid until/],
    [200 * 365 * 86_400_000, 'failed', /expired/],
  ])('judges the clock %d ms after the CA begins', async (offset, state, text) => {
    await using scratch = await createScratch();
    const authority = await readAuthority(
      await scratch.write('ca.pem', createTestAuthority('Proxy').certificatePem),
    );
    const now = Date.parse(authority.certificate.validFrom) + offset;
    expect(clockFinding(authority, now)).toMatchObject({ state, text: expect.stringMatching(text) });
  });
});
