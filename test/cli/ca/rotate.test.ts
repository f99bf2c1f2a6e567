// A rotation as an operator does it: the command beside a running proxy, which hands out both certificates without a restart.
import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createOrigin } from '../../support/recording-origin.ts';
import { createScratch } from '../../support/scratch.ts';
import { type Finished, program, runToEnd, spawnSallyport } from '../../support/spawned-process.ts';
import { createTestAuthority } from '../../support/test-authority.ts';
import { WireClient } from '../../support/wire-client.ts';

const origins = createTestAuthority();
const RULES = {
  rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'plaintext', value: 'v' }] }],
};

const ca = (...args: readonly string[]): Promise<Finished> =>
  runToEnd(process.execPath, [program, 'ca', ...args]);
const certificatesIn = (pem: string): readonly string[] =>
  pem.match(/-----BEGIN[^]*?END CERTIFICATE-----/g) ?? [];

/** A request of a client that trusts these certificates alone. */
async function askThrough(proxyPort: number, originPort: number, trusted: string): Promise<void> {
  const authority = `api.test:${originPort}`;
  const tls = { ca: trusted, name: 'api.test' };
  await using client = await WireClient.connectThrough(proxyPort, authority, tls);
  await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  await client.readResponse();
}

describe('ca rotate', () => {
  it('has a running proxy hand out both certificates, and sign with the first for clients that know it alone', async () => {
    await using origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] } });
    await using proxy = await spawnSallyport({ proxyConfig: RULES, upstreamCaPem: origins.certificatePem });
    const state = dirname(dirname(proxy.caFile));
    const before = await readFile(proxy.caFile, 'utf8');
    const { code, stdout, stderr } = await ca('rotate', '--json', '--state-dir', state);
    expect([code, stderr]).toEqual([0, '']);
    const rotation = JSON.parse(stdout);
    await proxy.process.record(({ msg }) => msg === 'the next CA is published');

    const served = await (await fetch(`http://127.0.0.1:${proxy.port}/ca.pem`)).text();
    const [first = '', second = '', ...more] = certificatesIn(served);
    expect([first, more]).toEqual([before.trim(), []]);
    expect(new X509Certificate(second).fingerprint256).toBe(rotation.fingerprint);
    const bundle = await readFile(join(state, 'public', 'ca-bundle.pem'), 'utf8');
    expect([bundle.includes(first), bundle.includes(second)]).toEqual([true, true]);
    const printed = (await ca('bundle', '--state-dir', state)).stdout;
    expect([printed.includes(first), printed.includes(second)]).toEqual([true, true]);

    await askThrough(proxy.port, origin.port, before);
    expect(origin.requests).toHaveLength(1);

    const asked = await runToEnd(process.execPath, [program, 'status', '--state-dir', state]);
    expect(asked.stdout).toContain(
      `next CA   ${rotation.fingerprint}, signs from ${rotation.signs_from} on\n`,
    );

    const again = await ca('rotate', '--state-dir', state);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('a rotation has begun')]);
  });

  it('lets the next CA sign when the overlap is over, without a restart', async () => {
    await using origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] } });
    await using proxy = await spawnSallyport({ proxyConfig: RULES, upstreamCaPem: origins.certificatePem });
    const state = dirname(dirname(proxy.caFile));
    const { stdout } = await ca('rotate', '--overlap', '0', '--json', '--state-dir', state);
    const { file } = JSON.parse(stdout);
    await proxy.process.record(({ msg }) => msg === 'the next CA is published');
    const next = await readFile(file, 'utf8');
    await askThrough(proxy.port, origin.port, next);
    expect(origin.requests).toHaveLength(1);
  });

  it('after one that is over begins another: the proxy that ran all the time signs with the CA that followed', async () => {
    await using origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] } });
    await using proxy = await spawnSallyport({ proxyConfig: RULES, upstreamCaPem: origins.certificatePem });
    const state = dirname(dirname(proxy.caFile));
    const published = (date: string) =>
      proxy.process.record(({ next }) => (next as { signs_from?: string } | undefined)?.signs_from === date);
    const begun = JSON.parse((await ca('rotate', '--json', '--state-dir', state)).stdout);
    await published(begun.signs_from);
    const second = await readFile(begun.file, 'utf8');
    const longAgo = new Date(Date.now() - 4 * 24 * 3_600_000);
    await writeFile(join(state, 'secret', 'ca.key.rotation'), longAgo.toISOString());
    await published(longAgo.toISOString());

    const { code, stdout, stderr } = await ca('rotate', '--json', '--state-dir', state);
    expect([code, stderr]).toEqual([0, '']);
    await published(JSON.parse(stdout).signs_from);
    expect(await readFile(proxy.caFile, 'utf8')).toBe(second);
    const served = await (await fetch(`http://127.0.0.1:${proxy.port}/ca.pem`)).text();
    const prints = certificatesIn(served).map((pem) => new X509Certificate(pem).fingerprint256);
    expect(prints).toEqual([new X509Certificate(second).fingerprint256, JSON.parse(stdout).fingerprint]);

    await askThrough(proxy.port, origin.port, second);
    expect(origin.requests).toHaveLength(1);
  });

  it.each([
    [['rotate', '--overlap=-1'], /--overlap must be a number of days from 0 to 365/],
    [['rotate', '--overlap', 'soon'], /--overlap must be a number of days/],
    [['show', '--overlap', '3'], /--overlap needs rotate/],
  ])('%j is refused and creates nothing', async (args, message) => {
    await using proxy = await spawnSallyport({ proxyConfig: RULES });
    const state = dirname(dirname(proxy.caFile));
    const { code, stderr } = await ca(...args, '--state-dir', state);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
    expect((await readdir(join(state, 'secret'))).filter((name) => name.startsWith('ca.'))).toEqual([
      'ca.key',
    ]);
  });

  it('a date that cannot be read is a setting to correct at the start', async () => {
    await using scratch = await createScratch();
    await mkdir(join(scratch.path, 'state', 'secret'), { recursive: true, mode: 0o700 });
    await scratch.write('state/secret/ca.key.next', 'a key');
    const schedule = await scratch.write('state/secret/ca.key.rotation', 'soon');
    const args = ['proxy', '--state-dir', join(scratch.path, 'state'), '--listen', '127.0.0.1:0'];
    const env = { SALLYPORT_ADMIN_LISTEN: 'off' };
    const { code, stderr } = await runToEnd(process.execPath, [program, ...args], { env });
    const message = `${schedule}: no date in the form of ISO 8601. Remove it to end the rotation.`;
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  it('a rotation that cannot be read leaves the active CA, and is one failed reload', async () => {
    await using proxy = await spawnSallyport({ proxyConfig: RULES });
    const schedule = join(dirname(dirname(proxy.caFile)), 'secret', 'ca.key.rotation');
    await writeFile(schedule, new Date().toISOString());
    await chmod(schedule, 0o600);
    const failed = await proxy.process.record(({ msg }) => String(msg).startsWith('reload failed'));
    expect(failed['reason']).toMatch(/ca\.key\.next: cannot be opened \(ENOENT\)/);
    const served = await (await fetch(`http://127.0.0.1:${proxy.port}/ca.pem`)).text();
    expect(served.trim()).toBe((await readFile(proxy.caFile, 'utf8')).trim());
  });
});
