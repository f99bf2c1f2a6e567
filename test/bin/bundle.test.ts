// The bundle, built into a package of its own and run from there: what users of npm and of the image get. The demo
// touches every part of it: rule, callback, cache, refusal. `proxy` is a bundle of its own, whose parts are loaded later.
// @module-tag long
import { once } from 'node:events';
import { access, copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAdminClient } from '../support/admin-client.ts';
import { createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { openH2Tunnel } from '../support/h2-tunnel.ts';
import { createH2Origin } from '../support/h2-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { launcher, projectRoot, runToEnd, SpawnedProcess } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';

const HOSTS = ['a.wild.localhost', 'called.localhost'];

describe('the bundle', () => {
  let scratch: Scratch;
  let copied: string;

  beforeAll(async () => {
    scratch = await createScratch();
    await mkdir(join(scratch.path, 'bin'));
    copied = join(scratch.path, 'bin', 'sallyport.js');
    await copyFile(launcher, copied);
    await copyFile(join(projectRoot, 'package.json'), join(scratch.path, 'package.json'));
    const build = join(projectRoot, 'scripts', 'build.ts');
    const built = await runToEnd(process.execPath, [build, join(scratch.path, 'dist')]);
    expect(built, built.stderr).toMatchObject({ code: 0, stderr: '' });
    await access(join(scratch.path, 'dist', 'THIRD-PARTY-LICENSES.txt'));
  }, 60_000);

  afterAll(() => scratch?.[Symbol.asyncDispose]());

  it('runs the demo without the sources and without node_modules', async () => {
    const { code, stdout, stderr } = await runToEnd(process.execPath, [copied, 'demo'], {
      cwd: scratch.path,
    });
    expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
    expect(stdout).not.toContain('FAIL');
    expect(stdout.match(/^ok /gm)?.length).toBeGreaterThanOrEqual(8);
  });

  it('runs a command behind a proxy', async () => {
    const args = [copied, 'run', '--', process.execPath, '-p', 'process.env.HTTPS_PROXY'];
    const { code, stdout, stderr } = await runToEnd(process.execPath, args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\n$/);
  });

  it('loads later what a proxy needs: admin API, sealed state, public suffixes, HTTP/2, callbacks', async () => {
    await using state = await createScratch();
    const authority = createTestAuthority();
    await using endpoint = await createCallbackEndpoint({ headers: { 'X-Key': 'of the callback' } });
    await using origin = await createH2Origin({ tls: { authority, names: HOSTS } });
    const env = {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: state.path,
      SALLYPORT_EGRESS_PORTS: String(origin.port),
      SALLYPORT_UPSTREAM_CA: await state.write('upstream-ca.pem', authority.certificatePem),
    };
    await using proxy = new SpawnedProcess(process.execPath, [copied, 'proxy'], { env });
    const ready = await proxy.record(({ msg }) => msg === 'ready');
    const token = (await readFile(String(ready['admin_token']), 'utf8')).trim();
    const admin = createAdminClient(String(ready['admin']), token);
    const header = { name: 'X-Key', type: 'opaque', value: 'of the rule' };
    const rule = (host: string): object => ({ rules: [{ match_hosts: [host], headers: [header] }] });
    expect(await admin('PUT', '/v1/proxy_config', { proxy_config: rule('*.com') })).toMatchObject({
      status: 422,
    });
    // Above what is parsed at once: the thread has a file of its own in the bundle.
    const no_proxy = Array.from({ length: 400 }, (_, i) => `host-${i}.large.localhost`);
    expect(await admin('PUT', '/v1/proxy_config', { ...rule('*.com'), no_proxy })).toMatchObject({
      status: 422,
    });
    const callbacks = [{ match_hosts: ['called.localhost'], url: endpoint.url, ttl_seconds: 60 }];
    const config = { ...rule('*.wild.localhost'), callbacks, no_proxy };
    expect(await admin('PUT', '/v1/proxy_config', { proxy_config: config })).toMatchObject({ status: 200 });
    expect(await readdir(join(state.path, 'secret', 'sandboxes'))).toHaveLength(1);

    const proxyPort = Number(new URL(String(ready['proxy'])).port);
    const ca = await readFile(String(ready['ca']), 'utf8');
    for (const name of HOSTS) {
      const session = await openH2Tunnel({ proxyPort, authority: `${name}:${origin.port}`, ca });
      const stream = session.request({ ':path': '/' });
      await once(stream.resume(), 'end');
      session.close();
    }
    const received = origin.streams.map(({ headers }) => headers.find(([name]) => name === 'x-key')?.[1]);
    expect(received).toEqual(['of the rule', 'of the callback']);
    proxy.kill('SIGTERM');
    expect(await proxy.exited).toEqual({ code: 0, signal: null });
  });
});
