// Agents that connect to allowed addresses only: an address as it is written, and every address of a name.
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AddressRules } from '../../../src/base/address-guard.ts';
import { createGuardedAgents } from '../../../src/base/http/guarded-agent.ts';

const closed: AddressRules = {
  allowAllPrivate: false,
  allowLoopback: false,
  allowCidrs: [],
  isOwnListener: () => false,
};

const requests: IncomingMessage[] = [];
const server = createServer((request, response) => {
  requests.push(request);
  response.end('served');
});
let port = 0;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => void server.close());

async function ask(url: string, rules: AddressRules): Promise<number | string> {
  using agents = createGuardedAgents(rules);
  return await new Promise((resolve) => {
    const agent = url.startsWith('https:') ? agents.https : agents.http;
    const request = get(
      url,
      { agent, protocol: url.startsWith('https:') ? 'https:' : 'http:' },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    request.on('error', ({ name }) => resolve(name));
  });
}

describe('a guarded agent', () => {
  it.each(['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]'])(
    'does not connect to %s where loopback is not allowed',
    async (host) => {
      const before = requests.length;
      expect(await ask(`http://${host}:${port}/`, closed)).toBe('AddressDenied');
      expect(requests.length).toBe(before);
    },
  );

  it('connects to what is allowed', async () => {
    const open = { ...closed, allowLoopback: true };
    expect(await ask(`http://127.0.0.1:${port}/`, open)).toBe(200);
    expect(await ask(`http://localhost:${port}/`, open)).toBe(200);
  });

  it('does not connect to its own listener', async () => {
    const own = { ...closed, allowLoopback: true, isOwnListener: (_: unknown, at: number) => at === port };
    expect(await ask(`http://127.0.0.1:${port}/`, own)).toBe('AddressDenied');
  });

  it('over TLS is guarded too', async () => {
    expect(await ask(`https://127.0.0.1:${port}/`, closed)).toBe('AddressDenied');
    expect(await ask(`https://localhost:${port}/`, closed)).toBe('AddressDenied');
  });
});
