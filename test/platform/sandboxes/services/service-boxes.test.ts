// Services in boxes that bubblewrap isolates, from a client of the gateway to a server of Python inside: HTTP, server-sent events and a
// WebSocket, and what the server sees of its clients.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createLog } from '../../../../src/base/log.ts';
import { createBubblewrapEngine } from '../../../../src/box-host/bubblewrap-engine.ts';
import { HiddenPaths } from '../../../../src/box-host/bubblewrap/hidden-paths.ts';
import { linkUsr } from '../../../../src/box-host/snapshots/base-snapshot.ts';
import { type BoxHostScene, createBoxHostScene, execute } from '../../../box-host/box-host-scene.ts';
import { capabilities, missing, titled } from '../../../box-host/isolation.ts';
import { createServiceScene, DOMAIN, type ServiceScene } from './service-scene.ts';

const PORT = 8000;
const SERVER = `
import base64, hashlib, http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *_): pass
    def do_GET(self):
        if self.headers.get('Upgrade') == 'websocket': return self.chat()
        if self.path == '/events': return self.events()
        body = json.dumps({'path': self.path, 'headers': self.headers.items()}).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Set-Cookie', 'visitor=1; Path=/')
        self.end_headers()
        self.wfile.write(body)
    def events(self):
        self.close_connection = True
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.end_headers()
        self.wfile.write(b'data: one\\n\\n')
        self.rfile.read()
    def chat(self):
        key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101)
        for name, value in (('Upgrade', 'websocket'), ('Connection', 'Upgrade'), ('Sec-WebSocket-Accept', accept)):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b'\\x81\\x05hello')
        self.rfile.read()
http.server.ThreadingHTTPServer(('127.0.0.1', ${PORT}), Handler).serve_forever()
`;

/** Snapshots of tests skip the search for what only root may read. */
async function createIsolatedHost(): Promise<BoxHostScene> {
  const log = createLog('silent', { write: () => undefined });
  return createBoxHostScene({
    async createEngine(directory) {
      const base = join(directory, 'bubblewrap', 'snapshots', 'base');
      await mkdir(join(base, 'root', 'usr'), { recursive: true });
      await linkUsr(join(base, 'root'));
      const manifest = { bytes: 0, entries: 0, hostUsr: { hidden: [] } };
      await writeFile(join(base, 'snapshot.json'), JSON.stringify(manifest));
      const hidden = new HiddenPaths(async () => []);
      return createBubblewrapEngine({ directory, found: capabilities, log, hidden });
    },
  });
}

describe.skipIf(missing !== undefined)(titled('a service in an isolated box'), () => {
  let host: BoxHostScene;
  let scene: ServiceScene;
  let boxes: readonly { readonly id: string; readonly name: string }[];
  beforeAll(async () => {
    host = await createIsolatedHost();
    scene = await createServiceScene(host.runtime);
    boxes = [await scene.create({ name: 'one' }), await scene.create({ name: 'two' })];
    for (const { id } of boxes) {
      const connection = await host.runtime.connect(id, 'data-plane');
      const command = `echo ${Buffer.from(SERVER).toString('base64')} | base64 -d > ~/server.py
        nohup python3 ~/server.py > /dev/null 2>&1 &
        until curl -s --noproxy '*' -o /dev/null http://127.0.0.1:${PORT}/; do sleep 0.1; done`;
      const { body } = await execute(connection, command);
      if (body['exit_code'] !== 0) throw new Error(JSON.stringify(body));
      connection.destroy();
    }
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    await host?.[Symbol.asyncDispose]();
  });

  const hostOf = (box = boxes[0]): string => `${PORT}--${box?.id}.${DOMAIN}`;

  it('sees neither the token of its clients nor the cookies of another box', async () => {
    const { token } = await scene.serviceUrl('one', PORT);
    const { browser_url } = await scene.serviceUrl('two', PORT);
    const headers = { 'X-Langsmith-Sandbox-Service-Token': token, 'X-Api-Key': scene.key };
    const byPath = await scene.get(`/services/${boxes[0]?.id}/${PORT}/a?b`, { headers });
    expect(JSON.parse(byPath.text).path).toBe('/a?b');
    const cookies = (byPath.headers['set-cookie'] ?? []).map((field) => field.split(';')[0]);
    expect(cookies).toEqual([`box-${boxes[0]?.id}-${PORT}-visitor=1`]);
    const { host: name, search } = new URL(browser_url);
    const signedIn = await scene.get(`/${search}`, { host: name });
    const cookie = signedIn.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const byHost = await scene.get('/', { host: name, headers: { Cookie: `${cookie}; own=1` } });
    const seen = JSON.parse(byHost.text).headers as readonly (readonly [string, string])[];
    expect(seen.find(([field]) => field.toLowerCase() === 'cookie')?.[1]).toBe('own=1');
    for (const secret of [token, scene.key, cookie, search.split('=')[1] ?? '-'])
      expect(byPath.text + byHost.text).not.toContain(secret);
    const other = await scene.get('/', { host: hostOf(), headers: { Cookie: cookie } });
    expect(other.status).toBe(401);
  });

  it('sends events as they happen, until its client leaves', async () => {
    const { token } = await scene.serviceUrl('one', PORT);
    const headers = { 'X-Langsmith-Sandbox-Service-Token': token };
    const stream: IncomingMessage = await scene.open('/events', { host: hostOf(), headers });
    expect(String((await once(stream, 'data'))[0])).toBe('data: one\n\n');
    stream.destroy();
  });

  it('accepts a WebSocket, which is cut with the box', async () => {
    const { token } = await scene.serviceUrl('two', PORT);
    const socket = new WebSocket(`ws://127.0.0.1:${scene.port}/`, {
      headers: { Host: hostOf(boxes[1]), 'X-Langsmith-Sandbox-Service-Token': token },
    });
    expect(String((await once(socket, 'message'))[0])).toBe('hello');
    const closed = once(socket, 'close');
    await scene.ask('POST', '/v2/sandboxes/boxes/two/stop', {});
    expect((await closed)[0]).toBe(1006);
  });

  it('is a 502 where nothing listens, and the port of the proxy is none', async () => {
    const { token } = await scene.serviceUrl('one', 8001);
    const headers = { 'X-Langsmith-Sandbox-Service-Token': token };
    const { status, text } = await scene.get(`/services/${boxes[0]?.id}/8001/`, { headers });
    expect([status, JSON.parse(text).detail.message]).toEqual([
      502,
      'Nothing in the sandbox listens on the port',
    ]);
    const proxy = await scene.ask('POST', '/v2/sandboxes/boxes/one/service-url', { port: 3128 });
    expect(proxy.status).toBe(422);
  });
});
