// The hostile services of boxes, behind a gateway on which all services share one origin.
import { type AddressInfo, connect } from 'node:net';
import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { parseServicePlace } from '../../../src/platform/sandboxes/services/service-address.ts';
import { toClientFields } from '../../../src/platform/sandboxes/services/service-response.ts';
import { silentLog } from '../../gateway/gateway-scene.ts';
import { serviceRows } from './service-rows.ts';

const PREFIX = '/services/11111111-1111-4111-8111-111111111111/8000';
let gateway: Gateway;
let port: number;
/** Of the service, for the next request. */
let response = '';
beforeAll(async () => {
  gateway = createGateway({
    findTarget({ host, target }) {
      const place = parseServicePlace(
        { gatewayUrl: `http://127.0.0.1:${port}`, domain: undefined },
        { host, target },
      );
      if (place === undefined || place === 'unknown') return undefined;
      const responseFields = (fields: readonly string[]): readonly string[] => toClientFields(place, fields);
      return {
        name: 'service',
        prefix: place.prefix,
        responseFields,
        address: { connect: async () => openService() },
      };
    },
    authorize: () => ({}),
    onRecord: () => undefined,
    log: silentLog,
  });
  await new Promise<void>((done) => gateway.listener.listen(0, '127.0.0.1', () => done()));
  ({ port } = gateway.listener.address() as AddressInfo);
});
afterAll(() => gateway.close(0));

function openService() {
  const [near, far] = duplexPair();
  far.on('error', () => undefined).once('data', () => far.end(response, 'latin1'));
  return near;
}

async function ask(): Promise<string> {
  const client = connect({ host: '127.0.0.1', port });
  client.on('error', () => undefined);
  client.write(`GET ${PREFIX}/ HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`);
  return text(client);
}

describe('a service of a box', () => {
  it.each(serviceRows.map((row) => [row.id, row] as const))('%s', async (_, { bytes, never, expected }) => {
    response = bytes.replaceAll('{PORT}', String(port));
    const got = await ask();
    expect(got).toMatch(expected);
    if (never !== undefined) expect(got).not.toMatch(never);
  });
});
