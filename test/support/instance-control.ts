// What a runner asks of an agent server, by node:http alone.
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { CreateInstanceControl } from '../../src/platform/deployment-gateway/instance-control.ts';

export const createPlainControl: CreateInstanceControl = ({ socketPath, gatewayToken }) => {
  const ask = async (method: string, path: string): Promise<IncomingMessage & { body: string }> => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = { 'x-sallyport-control-token': gatewayToken };
    request({ socketPath, method, path, headers, agent: false }, resolve).on('error', reject).end();
    const response = await promise;
    return Object.assign(response, { body: await text(response) });
  };
  return {
    isReady: async () => (await ask('GET', '/ok?check_db=1')).statusCode === 200,
    drain: async () => void (await ask('POST', '/internal/drain')),
    status: async () => JSON.parse((await ask('GET', '/internal/status')).body),
  };
};
