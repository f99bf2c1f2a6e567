// A connection to a port of the box's loopback address. The port of the proxy is refused: what comes from outside of the box
// must not be taken for the box's own requests.
import { connect as connectTcp, type Socket } from 'node:net';
import type { RunMethod } from './agent.ts';
import { CallError, codeOf } from './call-error.ts';
import { PROXY_PORT } from './protocol/messages.ts';

const ADDRESSES: readonly string[] = ['127.0.0.1', '::1'];

export const connect: RunMethod<'connect'> = async (call, { port }) => {
  if (port === PROXY_PORT) throw new CallError('PORT_REFUSED');
  const socket = await dial(port);
  const destroy = (): void => void socket.destroy();
  call.aborted.addEventListener('abort', destroy);
  if (call.aborted.aborted) destroy();
  await call.sendHead({});
  const input = (async () => {
    for await (const piece of call.input()) {
      if (socket.destroyed || socket.write(piece)) continue;
      await new Promise<void>((resolve) => {
        socket.once('drain', resolve).once('close', resolve);
      });
    }
    socket.end();
  })();
  input.catch(destroy);
  // Its end must not close the other direction.
  for await (const piece of socket.iterator({ destroyOnReturn: false })) await call.sendData('data', piece);
  await call.sendEnd();
  // Half-closed: the other direction may go on.
  await input;
  return {};
};

async function dial(port: number): Promise<Socket> {
  let refused: unknown;
  for (const host of ADDRESSES) {
    try {
      return await dialAddress(host, port);
    } catch (error) {
      if (codeOf(error) !== 'ECONNREFUSED') throw error;
      refused = error;
    }
  }
  throw refused;
}

function dialAddress(host: string, port: number): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connectTcp({ host, port, allowHalfOpen: true, noDelay: true });
  socket.once('connect', () => {
    socket.off('error', reject);
    resolve(socket);
  });
  socket.once('error', reject);
  return promise;
}
