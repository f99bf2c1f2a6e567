import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { type Finished, program, runToEnd, spawnSallyport } from '../support/spawned-process.ts';

const status = (args: readonly string[], env: Record<string, string> = {}): Promise<Finished> =>
  runToEnd(process.execPath, [program, 'status', ...args], { env });

/** A program of the sandbox that has taken the address of the admin API. */
async function pretendToBeAdmin(): Promise<Server> {
  const sandboxes = [{ id: 'x\u001b[2J\u009b2J\u202e', revision: 1, connections: 0 }];
  const server = createServer((_, response) => response.end(JSON.stringify({ sandboxes })));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

/** The same as another user: prints its port, then each Authorization that it gets. */
const listenAsOther = `
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.headers.get('Authorization') or 'none', flush=True)
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()`;

describe('status', () => {
  it.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
    'does not send the token to a program of another user that has taken the address of the admin API',
    async () => {
      await using scratch = await createScratch();
      const other = spawn('python3', ['-c', listenAsOther], {
        uid: 4711,
        gid: 4711,
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      try {
        const lines = createInterface(other.stdout)[Symbol.asyncIterator]();
        const port = String((await lines.next()).value);
        const flags = ['--state-dir', scratch.path, '--admin-listen', `127.0.0.1:${port}`];
        const { code, stdout } = await status(flags, { SALLYPORT_ADMIN_TOKEN: 'c4n4ry-0123456789abcdef' });
        expect(code).toBe(0);
        expect(stdout).toMatch(
          /^problem +the admin token is not sent to 127\.0\.0\.1:\d+, where a program of another user \(uid 4711\)/m,
        );
        other.kill();
        const received: string[] = [];
        for await (const line of { [Symbol.asyncIterator]: () => lines }) received.push(line);
        expect(received).toEqual(['none']);
      } finally {
        other.kill();
      }
    },
  );

  it('prints no control character of what has taken the address of the admin API', async () => {
    await using scratch = await createScratch();
    await using server = await pretendToBeAdmin();
    const { port } = server.address() as AddressInfo;
    const flags = ['--state-dir', scratch.path, '--admin-listen', `127.0.0.1:${port}`];
    const { stdout } = await status(flags, { SALLYPORT_ADMIN_TOKEN: 'c4n4ry-0123456789abcdef' });
    expect(stdout).toMatch(/^sandbox +x\\u001b\[2J\\u009b2J\\u202e, revision 1/m);
    expect(stdout).not.toMatch(/[[\p{Cc}\p{Bidi_Control}]--\n]/v);
  });

  it('of a running proxy shows its sandboxes and its CA, also in the environment of a client', async () => {
    await using sallyport = await spawnSallyport({ proxyConfig: { rules: [] } });
    const ready = await sallyport.process.record(({ msg }) => msg === 'ready');
    const admin = String(ready['admin']).replace('http://', '');
    const flags = ['--state-dir', dirname(dirname(sallyport.caFile)), '--admin-listen', admin];
    const client = { HTTP_PROXY: `http://127.0.0.1:${sallyport.port}`, NODE_USE_ENV_PROXY: '1' };
    const { code, stdout } = await status(flags, client);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(
        /^proxy +\S+, ready\nCA +[0-9A-F:]+, valid until .*\nsandbox +default, revision 1,/,
      ),
    ]);
    expect(JSON.parse((await status([...flags, '--json'])).stdout)).toMatchObject({
      // Not the one of this command's own settings.
      proxy: `127.0.0.1:${sallyport.port}`,
      ready: true,
      problems: [],
      sandboxes: [{ id: 'default' }],
    });
  });

  it('without a proxy names what is missing, each with what to do, and ends with code 1', async () => {
    await using scratch = await createScratch();
    const { code, stdout } = await status([
      '--state-dir',
      scratch.path,
      '--admin-listen',
      `unix:${scratch.path}/none.sock`,
    ]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^proxy +127\.0\.0\.1:3128, not ready\n/);
    expect(stdout).toMatch(/^problem +the admin API at unix:\S+ cannot be reached \(ENOENT\): start/m);
    expect(stdout).toMatch(/^problem +the CA certificate \S+ cannot be read \(ENOENT\): start/m);
  });
});
