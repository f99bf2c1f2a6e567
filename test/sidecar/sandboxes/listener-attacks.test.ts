// What a program inside a box can do to the listener of its box, and through it to other boxes of the same sidecar. Each attack is
// shown to work where nothing stops it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openNamespaceListener } from '../../../src/box-host/listeners/namespace-listener.ts';
import { type Box, type NamespaceScene, createNamespaceScene } from './namespace-scene.ts';
import { keyRules } from './sandbox-scene.ts';

const PATH = '/v1/sandboxes';
const config = { egress: { allow_private: ['loopback'] }, limits: { max_waiting: 64 } };

/** Runs a script of Node inside the box; resolves with what it prints. */
async function runInside({ space }: Box, script: string): Promise<string> {
  const { stdout, stderr } = await space.run(process.execPath, ['-e', script]);
  return stdout.trim() || stderr;
}

/** Prints why the port cannot be used, or `listens`. */
const listenScript = (port: number, host: string): string => `
  const server = require('node:net').createServer();
  server.on('error', ({ code }) => console.log(code));
  server.listen({ port: ${port}, host: '${host}' }, () => { console.log('listens'); server.close(); });`;

const connectScript = (port: number): string => `
  const socket = require('node:net').connect(${port}, '127.0.0.1');
  socket.on('error', ({ code }) => console.log(code));
  socket.on('connect', () => { console.log('connected'); socket.destroy(); });`;

/**
 * Opens connections, each of which sends \`bytes\`, resets them if it should, and keeps the others open until its input ends.
 * Prints how many the proxy has closed.
 */
const floodScript = (count: number, bytes: string, isReset: boolean): string => `
  const net = require('node:net');
  let open = 0, closed = 0;
  const done = () => { if (open === ${count}) setImmediate(() => { console.log(closed); process.exit(); }); };
  const next = () => {
    const socket = net.connect(3128, '127.0.0.1', () => {
      open += 1;
      ${isReset ? 'socket.resetAndDestroy();' : `socket.write('${bytes}');`}
      if (open < ${count}) next(); else ${isReset ? 'done()' : "socket.on('close', () => undefined), probe()"};
    });
    socket.on('error', () => undefined).on('close', () => { closed += 1; }).resume();
  };
  // Everything that the proxy did to the others has arrived before this response.
  const probe = () => {
    const socket = net.connect(3128, '127.0.0.1', () => socket.write('GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'));
    socket.on('error', () => undefined).on('close', done).resume();
  };
  next();`;

describe('a program inside a box', () => {
  let scene: NamespaceScene;
  let attacker: Box;
  let victim: Box;
  beforeAll(async () => {
    scene = await createNamespaceScene({ config });
    attacker = await scene.createBox('attacker', { proxy_config: keyRules('of-attacker') });
    victim = await scene.createBox('victim', { proxy_config: keyRules('of-victim') });
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  async function keyOf(box: Box): Promise<string | undefined> {
    const url = `https://api.test:${scene.origin.port}/`;
    const { stdout } = await box.curl('-o', '/dev/null', '-w', '%{http_code}', url);
    if (stdout !== '200') return stdout;
    return scene.origin.requests.at(-1)?.headers.find(([name]) => name === 'X-Key')?.[1];
  }

  it.each(['127.0.0.1', '0.0.0.0', '::'])('cannot take the port of the proxy at %s', async (host) => {
    expect(await runInside(attacker, listenScript(3128, host))).toBe('EADDRINUSE');
    expect(await runInside(attacker, listenScript(3130, host))).toBe('listens');
    expect(await keyOf(attacker)).toBe('of-attacker');
  });

  it('does not reach a listener of another box, which programs of that box do', async () => {
    const { handle } = await openNamespaceListener(victim.space, { host: '127.0.0.1', port: 3140 });
    const handed_over = scene.handOver(handle, 'second');
    expect((await scene.ask('POST', PATH, { id: 'second', listen: { handed_over } })).status).toBe(201);
    expect(await runInside(attacker, connectScript(3140))).toBe('ECONNREFUSED');
    expect(await runInside(victim, connectScript(3140))).toBe('connected');
    expect((await scene.ask('DELETE', `${PATH}/second`)).status).toBe(204);
  });

  it.each([
    ['that say nothing', '', false],
    ['that begin a request', 'CONNECT api', false],
    ['that are reset', '', true],
  ])(
    'that opens more connections than may wait, %s, takes nothing from another box',
    async (_, bytes, isReset) => {
      const flood = runInside(attacker, floodScript(300, bytes, isReset));
      const served = [await keyOf(victim), await keyOf(victim)];
      const closed = Number(await flood);
      served.push(await keyOf(victim), await keyOf(attacker));
      expect(served).toEqual(['of-victim', 'of-victim', 'of-victim', 'of-attacker']);
      // The flood did reach the limit.
      expect(closed).toBeGreaterThan(200);
    },
  );
});

describe('a stop and a start of one box that overlap', () => {
  it('leave one sandbox, with the rules and the listener of the start', async () => {
    await using scene = await createNamespaceScene({ config });
    const box = await scene.createBox('box', { proxy_config: keyRules('0') });
    const statusAt = async (port: number): Promise<string> => {
      const url = `https://api.test:${scene.origin.port}/`;
      const proxy = ['-x', `http://127.0.0.1:${port}`];
      return (await box.curl(...proxy, '-o', '/dev/null', '-w', '%{http_code}', url)).stdout;
    };
    for (let i = 1; i <= 8; i += 1) {
      const [before, next] = i % 2 === 1 ? [3128, 3129] : [3129, 3128];
      const { handle } = await openNamespaceListener(box.space, { host: '127.0.0.1', port: next });
      const document = {
        id: 'box',
        listen: { handed_over: scene.handOver(handle, 'box') },
        proxy_config: keyRules(String(i)),
      };
      const client = statusAt(before);
      const [removed, created] = await Promise.all([
        scene.ask('DELETE', `${PATH}/box`),
        scene.ask('POST', PATH, document),
      ]);
      expect(removed.status).toBe(204);
      // Received the other way round, it changed nothing, and its reference was not used.
      const again = created.status === 409 ? await scene.ask('POST', PATH, document) : created;
      expect(again.status).toBe(201);
      await client;
      const { body } = await scene.ask('GET', PATH);
      expect(body['sandboxes']).toHaveLength(2);
      expect([await statusAt(before), await statusAt(next)]).toEqual(['000', '200']);
      expect(scene.origin.requests.at(-1)?.headers).toContainEqual(['X-Key', String(i)]);
    }
  });
});
