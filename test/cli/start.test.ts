// `sallyport start`, as the README shows it: the commands it prints reach an origin with the injected credential.
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { stateOf } from '../../src/cli/start.ts';
import { createScratch } from '../support/scratch.ts';
import { program, runToEnd, SpawnedProcess } from '../support/spawned-process.ts';
import { WireClient } from '../support/wire-client.ts';

it('prints commands that reach its origin through the proxy, with the credential of the example', async () => {
  await using scratch = await createScratch();
  const preload = join(import.meta.dirname, 'free-ports.ts');
  await using start = new SpawnedProcess(process.execPath, ['--import', preload, program, 'start'], {
    env: {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: scratch.path,
    },
  });
  const printed = await start.errorOutput((text) => text.includes('Ctrl-C'));
  // The credential that the second command shows is explained before it is seen.
  expect(printed).toMatch(/shows the\ninjected credential: .*SALLYPORT_SCRUB=body/);
  const [, ca = '', proxyPort, authority = ''] =
    /--cacert (\S+) -x http:\/\/127\.0\.0\.1:(\d+) https:\/\/(\S+)\/v1\/hello/.exec(printed) ?? [];
  await using client = await WireClient.connectThrough(Number(proxyPort), authority, {
    ca: await readFile(ca, 'utf8'),
    name: 'api.localhost',
  });
  await client.send(`GET /v1/hello HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  const { head, text } = await client.readResponse();
  expect(head.status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ host: authority, path: '/v1/hello' });
  expect(text).toContain('demo-token-4f1c9a');
  start.kill('SIGTERM');
  expect(await start.exited).toEqual({ code: 0, signal: null });
});

it('uses the ports that are given, and says so where one is taken', async () => {
  await using scratch = await createScratch();
  const args = [
    'start',
    '--listen',
    '127.0.0.1:0',
    '--admin-listen',
    '127.0.0.1:0',
    '--state-dir',
    scratch.path,
  ];
  const free = ['--origin-port', '0', '--callback-port', '0'];
  await using start = new SpawnedProcess(process.execPath, [program, ...args, ...free]);
  const printed = await start.errorOutput((text) => text.includes('Ctrl-C'));
  const port = /api\.localhost:(\d+)\//.exec(printed)?.[1] ?? '';
  expect(port).not.toBe('9443');
  expect(printed).toMatch(/sed -e s\/sallyport-demo\/changed\/ -e s\/:9444\/:\d+\/ /);
  const second = await runToEnd(process.execPath, [program, ...args, '--origin-port', port]);
  expect(second).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`127.0.0.1:${port} (EADDRINUSE)`),
  });
  expect(second.stderr).toContain('--origin-port');
});

it('prints commands that work for any path and any address, and writes through no link', async () => {
  await using scratch = await createScratch();
  const state = join(scratch.path, 'my state');
  await mkdir(state);
  const target = await scratch.write('target', 'untouched');
  await symlink(target, join(state, 'origin-ca.pem'));
  const at = ['--listen', '[::1]:0', '--admin-listen', `unix:${scratch.path}/the admin.sock`];
  const args = [program, 'start', ...at, '--state-dir', state, '--origin-port', '0', '--callback-port', '0'];
  await using start = new SpawnedProcess(process.execPath, args);
  const printed = await start.errorOutput((text) => text.includes('Ctrl-C'));
  expect(await readFile(target, 'utf8')).toBe('untouched');
  const command = (name: string): string =>
    new RegExp(`^  ${name} +(.*)$`, 'm').exec(printed)?.[1] ?? `echo ${name} is missing`;
  for (const [name, expected] of [
    ['direct', /"path": "\/v1\/hello"/],
    ['via proxy', /demo-token-4f1c9a/],
    ['change rule', /"revision":2/],
    ['via proxy', /"changed"/],
  ] as const) {
    const { code, stdout, stderr } = await runToEnd('sh', ['-c', command(name)]);
    expect([name, code, stdout + (code === 0 ? '' : stderr)]).toEqual([
      name,
      0,
      expect.stringMatching(expected),
    ]);
  }
});

it.each(['70000', '-1', 'x'])('--origin-port=%s is refused', async (port) => {
  const { code, stderr } = await runToEnd(process.execPath, [program, 'start', `--origin-port=${port}`]);
  expect([code, stderr]).toEqual([2, 'sallyport: --origin-port must be a port from 0 to 65535\n']);
});

it('keeps its state in the checkout, but not among installed packages', () => {
  const installed = join('/', 'app', 'node_modules', 'sallyport');
  expect(stateOf(undefined, '/checkout')).toBe('/checkout/certs');
  expect(stateOf(undefined, installed)).toMatch(/\/sallyport\/start$/);
  expect(stateOf('', installed)).not.toContain('node_modules');
  expect(stateOf('/state', installed)).toBe('/state');
});
