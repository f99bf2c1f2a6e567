// Attacks on the resources of a process: memory, descriptors, processor, threads. Each opens its connections, continues until
// the proxy has responded or closed them, and closes the rest. Measures nothing.
import { type Socket, connect } from 'node:net';
import { openTunnel, secureTunnel } from '../test/e2e/tunnel.ts';

export type Target = {
  readonly port: number;
  readonly caPem: string;
  /** `host:port` of the TLS host, with any name below `test`, and of the plaintext host. */
  readonly securePort: number;
  readonly clearPort: number;
};
export type Attack = { readonly what: string; run(target: Target): Promise<void> };

const AT_A_TIME = 200;
/** Concurrent handshakes: with more, the measurement would wait for its own processor, not for the proxy. */
const HANDSHAKES_AT_A_TIME = 16;
const MIB = 1_048_576;

function open(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(undefined));
    socket.on('error', () => socket.destroy());
  });
}

async function each(
  count: number,
  act: (n: number) => Promise<void>,
  atATime: number = AT_A_TIME,
): Promise<void> {
  const turns = Array.from({ length: count }, (_, n) => n).values();
  await Promise.all(
    Array.from({ length: Math.min(count, atATime) }, async () => {
      for (const n of turns) await act(n).catch(() => undefined);
    }),
  );
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    socket.once('close', () => resolve());
  });
}

/** `count` concurrent connections, each with these bytes, until the proxy has closed them. */
async function stand(target: Target, count: number, bytes: string, dripped = ''): Promise<void> {
  const sockets: Socket[] = [];
  await each(count, async () => {
    const socket = await open(target.port);
    if (!socket) return;
    sockets.push(socket.resume());
    if (bytes !== '') socket.write(bytes, 'latin1');
  });
  const drip = setInterval(() => {
    if (dripped !== '') for (const socket of sockets) if (!socket.destroyed) socket.write(dripped);
  }, 500);
  await Promise.all(sockets.map(closed));
  clearInterval(drip);
}

/** One after another inside tunnels, `count` in total. */
async function askInside(
  target: Target,
  count: number,
  name: (n: number) => string,
  bytes: (host: string) => string,
): Promise<void> {
  const askOne = async (n: number): Promise<void> => {
    const host = `${name(n)}:${target.securePort}`;
    const raw = await openTunnel(target.port, host);
    raw.on('error', () => raw.destroy());
    const secure = await secureTunnel(raw, name(n), target.caPem);
    secure.on('error', () => secure.destroy());
    secure.resume().write(bytes(host), 'latin1');
    await closed(secure);
  };
  await each(count, askOne, HANDSHAKES_AT_A_TIME);
}

const ask = (path: string, host: string, ...fields: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...fields, '', ''].join('\r\n');

export const attacks: readonly Attack[] = [
  {
    what: 'slowloris: 2,000 heads, one byte at a time',
    run: (target) => stand(target, 2_000, 'GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nX-A: ', 'z'),
  },
  {
    what: 'slow body: 1,000 that stop',
    run: (target) => {
      const host = `clear.test:${target.clearPort}`;
      const head = `POST http://${host}/silent HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100000\r\n\r\n`;
      return stand(target, 1_000, `${head}${'x'.repeat(1_000)}`);
    },
  },
  {
    what: 'slow read: 200 endless responses that the client does not read',
    async run(target) {
      const host = `clear.test:${target.clearPort}`;
      const sockets: Socket[] = [];
      await each(200, async () => {
        const socket = await open(target.port);
        if (!socket) return;
        socket.pause().write(ask('/endless', host).replace('GET ', `GET http://${host}`));
        sockets.push(socket);
      });
      // A paused socket reports no end: only what is sent after the timeout of the proxy shows it.
      await new Promise((resolve) => setTimeout(resolve, 8_000));
      for (const socket of sockets) socket.destroy();
    },
  },
  {
    what: 'connections: 20,000 silent ones, 4,000 at a time',
    async run(target) {
      for (let round = 0; round < 5; round += 1) await stand(target, 4_000, 'G');
    },
  },
  {
    what: 'minting: 300 names, each with a leaf of its own',
    run: (target) =>
      askInside(
        target,
        300,
        (n) => `n${n}.many.test`,
        (host) => ask('/', host),
      ),
  },
  {
    what: 'heads of a mebibyte, 200 of them',
    async run(target) {
      await each(200, async () => {
        const socket = await open(target.port);
        if (!socket) return;
        socket.resume().write(`GET / HTTP/1.1\r\nX: ${'h'.repeat(MIB)}`);
        await closed(socket);
      });
    },
  },
  {
    what: 'chunks of one byte, 50 bodies of 8 KiB',
    run: (target) =>
      askInside(
        target,
        50,
        () => 'api.test',
        (host) =>
          ask('/', host, 'Transfer-Encoding: chunked').replace('GET', 'POST') +
          '1\r\nx\r\n'.repeat(8_192) +
          '0\r\n\r\n',
      ),
  },
  {
    what: 'endless interim responses and response heads, 100 each',
    async run(target) {
      for (const path of ['/interim', '/fields'])
        await askInside(
          target,
          100,
          () => 'api.test',
          (host) => ask(path, host),
        );
    },
  },
  {
    what: 'callbacks: 500 hosts below a wildcard',
    run: (target) =>
      askInside(
        target,
        500,
        (n) => `n${n}.called.test`,
        (host) => ask('/', host),
      ),
  },
  {
    what: 'silent DNS: 1,000 names without a DNS response',
    run: async (target) => {
      await each(1_000, async (n) => {
        const socket = await open(target.port);
        if (!socket) return;
        socket.resume().write(`CONNECT n${n}.silent.test:443 HTTP/1.1\r\nHost: x\r\n\r\n`);
        await closed(socket);
      });
    },
  },
];
