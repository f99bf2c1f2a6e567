// `sallyport tail` as a process, beside a running proxy.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { head } from '../../proxy/data-path.ts';
import {
  SpawnedProcess,
  type SpawnedSallyport,
  cleanEnvironment,
  program,
  runToEnd,
  spawnSallyport,
} from '../../support/spawned-process.ts';
import { createScratch } from '../../support/scratch.ts';
import { WireClient } from '../../support/wire-client.ts';

async function flagsOf(sallyport: SpawnedSallyport): Promise<readonly string[]> {
  const ready = await sallyport.process.record(({ msg }) => msg === 'ready');
  const admin = String(ready['admin']).replace('http://', '');
  return ['--state-dir', dirname(dirname(sallyport.caFile)), '--admin-listen', admin];
}

/** Each is refused: port 9 is not allowed. */
async function request(port: number, path: string): Promise<void> {
  await using client = await WireClient.connect(port);
  await client.send(head(`GET http://192.0.2.1:9${path} HTTP/1.1`, 'Host: 192.0.2.1:9'));
  expect((await client.readResponse()).head.status).toBe(403);
}

/** Requests until the command shows one: it may not follow yet. */
async function shownBy(tail: SpawnedProcess, port: number, path: string): Promise<string> {
  const shown = tail.output((text) => text.includes(path));
  for (;;) {
    await request(port, path);
    if (tail.stdout.includes(path)) return shown;
  }
}

describe('tail', () => {
  let sallyport: SpawnedSallyport;
  let flags: readonly string[];
  beforeAll(async () => {
    sallyport = await spawnSallyport({ proxyConfig: { rules: [] } });
    flags = await flagsOf(sallyport);
  });
  afterAll(() => sallyport[Symbol.asyncDispose]());
  const tail = (...args: readonly string[]): SpawnedProcess =>
    new SpawnedProcess(process.execPath, [program, 'tail', ...flags, ...args]);

  it('shows each record as a line, and as JSON, if it matches the filters', async () => {
    await using text = tail('--refused', '--host', '192.0.2.*', '--status', '4xx');
    await using json = tail('--json', '--outcome', 'refused');
    await using none = tail('--host', '*.example.com');
    const shown = await shownBy(text, sallyport.port, '/first');
    expect(shown).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3}  403 refused port_denied  GET http:\/\/192\.0\.2\.1:9\/first  .* ms$/m,
    );
    const [line = ''] = (await shownBy(json, sallyport.port, '/second'))
      .split('\n')
      .filter((one) => one.includes('/second'));
    expect(JSON.parse(line)).toMatchObject({
      sandbox: 'default',
      reason: 'port_denied',
      status: 403,
      path: '/second',
    });
    expect(none.stdout).toBe('');
  });

  it('ends with code 0 when its reader ends, as in a pipe to head', async () => {
    const child = spawn(process.execPath, [program, 'tail', ...flags], {
      env: cleanEnvironment(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    child.stdout.once('data', () => child.stdout.destroy());
    while (child.exitCode === null) await request(sallyport.port, '/third');
    expect(await exited).toEqual([0, null]);
  });

  it('ends with code 2 for a filter that is invalid, and names the option', async () => {
    const args = [program, 'tail', ...flags, '--outcome', 'denied'];
    const { code, stderr } = await runToEnd(process.execPath, args);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^sallyport: --outcome: Input should be one of injected, forwarded,/),
    ]);
  });

  it('ends with code 0 and says so when the proxy ends', async () => {
    await using last = tail();
    await shownBy(last, sallyport.port, '/last');
    sallyport.process.kill('SIGTERM');
    expect(await last.exited).toEqual({ code: 0, signal: null });
    expect(last.stderr).toBe('sallyport: the proxy ends\n');
    expect(await sallyport.process.exited).toEqual({ code: 0, signal: null });
  });
});

it('tail without a proxy says what to do, with code 1', async () => {
  await using scratch = await createScratch();
  await scratch.write('token', 'canary-0123456789abcdef');
  const flags = ['--state-dir', scratch.path, '--admin-listen', `unix:${scratch.path}/none.sock`];
  const env = { SALLYPORT_ADMIN_TOKEN: 'canary-0123456789abcdef' };
  const { code, stderr } = await runToEnd(process.execPath, [program, 'tail', ...flags], { env });
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^sallyport: the admin API at unix:\S+ cannot be reached \(ENOENT\): start/),
  ]);
});

it('tail prints no control character of another program, and says how many records were dropped', async () => {
  await using scratch = await createScratch();
  const lines = [
    '{"authority":"x\\u001b[2J\u009b2J","outcome":"refused"}',
    'no record',
    '',
    '{"notice":"dropped","count":7}',
  ];
  await using server = createServer((_, response) => response.end(`${lines.join('\n')}\n`));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const flags = ['--state-dir', scratch.path, '--admin-listen', `127.0.0.1:${port}`];
  const env = { SALLYPORT_ADMIN_TOKEN: 'canary-0123456789abcdef' };
  const { code, stdout, stderr } = await runToEnd(process.execPath, [program, 'tail', ...flags], { env });
  expect(stdout).toBe(
    '-    - refused  x\\u001b[2J\\u009b2J\n7 records were dropped: this output is read too slowly\n',
  );
  // It did not say that it ends.
  expect([code, stderr]).toEqual([1, 'sallyport: the connection to the admin API was cut\n']);
});
