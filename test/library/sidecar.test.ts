import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createSidecar } from '../../src/library/sidecar.ts';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { createAdminClient } from '../support/admin-client.ts';
import { createOrigin } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { runToEnd } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';

const HOST = 'api.localhost';
const origins = createTestAuthority();
const rule = (value: string): object => ({
  rules: [{ match_hosts: [HOST], headers: [{ name: 'X-Key', type: 'workspace_secret', value }] }],
});

async function createScene() {
  const scratch = await createScratch();
  const origin = await createOrigin({ tls: { authority: origins, names: [HOST] } });
  const ca_file = await scratch.write('ca.pem', origins.certificatePem);
  return {
    origin,
    settings: { upstream: { ca_file } },
    async [Symbol.asyncDispose]() {
      await origin[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

async function get(proxyUrl: string, ca: string, port: number): Promise<void> {
  const authority = `${HOST}:${port}`;
  await using client = await WireClient.connectThrough(Number(new URL(proxyUrl).port), authority, {
    ca,
    name: HOST,
  });
  await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  await client.readResponse();
}

const WITH_KEY = { proxyConfig: rule('{KEY}'), secrets: { KEY: 'k' } };

describe('a sidecar of the library', () => {
  it('injects by its rules, and by those that replace them', async () => {
    await using scene = await createScene();
    const { origin, settings } = scene;
    const secrets = { KEY: 'first' };
    const lines: string[] = [];
    await using sidecar = await createSidecar({
      ...{ proxyConfig: rule('{KEY}'), secrets, settings },
      onLog: (line) => lines.push(line),
    });
    await get(sidecar.proxyUrl, sidecar.caPem, origin.port);
    sidecar.apply(rule('new {KEY}'), { KEY: 'second' });
    await get(sidecar.proxyUrl, sidecar.caPem, origin.port);
    const seen = origin.requests.map(({ headers }) => headers.find(([name]) => name === 'X-Key')?.[1]);
    expect(seen).toEqual(['first', 'new second']);
    await sidecar.close();
    expect(lines.join('')).toContain('"outcome":"injected"');
    expect(lines.join('')).not.toMatch(/first|second/);
  });

  it('gives a client process the address and the CA', async () => {
    await using scene = await createScene();
    const { origin, settings } = scene;
    await using sidecar = await createSidecar({ ...WITH_KEY, settings });
    const program = `fetch('https://${HOST}:${origin.port}/').then(({ status }) => console.log(status))`;
    const env = sidecar.environment;
    const { stdout, stderr } = await runToEnd(process.execPath, ['-e', program], { env });
    expect([stdout, stderr]).toEqual(['200\n', '']);
    expect(origin.requests).toHaveLength(1);
    expect(JSON.stringify(env)).not.toContain('KEY');
  });

  it('closes its port and removes its files, once', async () => {
    const sidecar = await createSidecar();
    const { port } = new URL(sidecar.proxyUrl);
    const file = sidecar.environment['NODE_EXTRA_CA_CERTS'] ?? '';
    expect(existsSync(file)).toBe(true);
    await Promise.all([sidecar.close(), sidecar.close()]);
    await sidecar[Symbol.asyncDispose]();
    expect(existsSync(file)).toBe(false);
    expect(() => sidecar.apply({ rules: [] })).toThrow('the sidecar is closed: create another one');
    const server = createServer().listen(Number(port), '127.0.0.1');
    await once(server, 'listening');
    server.close();
  });

  it('has an admin API where the settings ask for it', async () => {
    await using without = await createSidecar();
    expect([without.adminUrl, without.adminToken]).toEqual([undefined, undefined]);
    await using sidecar = await createSidecar({ settings: { admin: { listen: '127.0.0.1:0' } } });
    const admin = createAdminClient(sidecar.adminUrl ?? '', sidecar.adminToken ?? '');
    expect(await admin('GET', '/v1/sandboxes')).toMatchObject({ status: 200 });
  });

  it('signs with a CA of its caller', async () => {
    const { certificatePem, privateKeyPem } = createCertificateAuthority({ commonName: 'Given' });
    await using sidecar = await createSidecar({ ca: { certificatePem, privateKeyPem } });
    expect(sidecar.caPem).toBe(certificatePem);
  });

  it.each([
    [{ settings: { listen: 'nowhere' } }, /^settings\.listen: /],
    [{ settings: { lisen: '127.0.0.1:0' } }, /^settings\.lisen: /],
    [{ settings: { state_dir: '/tmp/x' } }, /^settings\.state_dir has no effect in the library: remove it$/],
    [{ settings: { metrics: { listen: '127.0.0.1:0' } } }, /^settings\.metrics has no effect in the library/],
    [{ proxyConfig: { rules: [{}] } }, /^proxyConfig\.rules\.0\.match_hosts: /],
    [{ proxyConfig: rule('{ABSENT}') }, /^proxyConfig\.rules\.0.*ABSENT/],
    [
      { ca: { certificatePem: 'x', privateKeyPem: 'y' } },
      /^ca\.certificatePem must be one certificate in PEM$/,
    ],
  ])('%j is refused', async (options, message) => {
    await expect(createSidecar(options)).rejects.toThrow(message);
  });

  it('serves on where onLog throws, and the error reaches the process of its caller', async () => {
    await using scene = await createScene();
    const { origin, settings } = scene;
    const program = `
import { createSidecar } from '${new URL('../../src/library/sidecar.ts', import.meta.url).href}';
const seen = [];
process.on('uncaughtException', ({ message }) => seen.push(message));
const sidecar = await createSidecar({
  settings: ${JSON.stringify(settings)},
  proxyConfig: { rules: [{ match_hosts: ['${HOST}'], headers: [{ name: 'X-Key', type: 'plaintext', value: 'v' }] }] },
  onLog() { throw new Error('of the caller'); },
});
const { execFile } = process.getBuiltinModule('node:child_process');
const get = "fetch('https://${HOST}:${origin.port}/').then(({ status }) => console.log(status))";
const run = () => new Promise((done) =>
  execFile(process.execPath, ['-e', get], { env: sidecar.environment }, (_error, stdout) => done(stdout.trim())));
const statuses = [await run(), await run()];
await sidecar.close();
console.log(JSON.stringify([statuses, [...new Set(seen)]]));`;
    const { stdout, stderr } = await runToEnd(process.execPath, ['--input-type=module', '-e', program]);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([['200', '200'], ['of the caller']]);
  });

  it('keeps what is active where new rules are invalid', async () => {
    await using scene = await createScene();
    const { origin, settings } = scene;
    await using sidecar = await createSidecar({ ...WITH_KEY, settings });
    expect(() => sidecar.apply(rule('{OTHER}'), { KEY: 'other' })).toThrow(/OTHER/);
    await get(sidecar.proxyUrl, sidecar.caPem, origin.port);
    expect(origin.requests[0]?.headers.find(([name]) => name === 'X-Key')?.[1]).toBe('k');
  });
});
