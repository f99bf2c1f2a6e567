// Connections to a port beside the agent, in both directions and half-closed.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { parseNothing } from '../../src/box-agent/protocol/messages.ts';
import type { AgentChannel } from '../../src/box-host/agents/agent-channel.ts';
import { openDataCall } from '../../src/box-host/agents/call-data.ts';
import { startAgent } from './spawned-agent.ts';

const open = (channel: AgentChannel, port: number) =>
  openDataCall(channel, { method: 'connect', port }, { parseHead: parseNothing, parseResult: parseNothing });

describe('a connection', () => {
  it('carries bytes both ways and passes the end of each on', async () => {
    await using agent = startAgent();
    const server = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { call, data } = open(agent.channel, (server.address() as AddressInfo).port);
    await call.head;
    const received = Array.fromAsync(data());
    await call.write(Buffer.alloc(2_000_000, 'x'));
    call.end();
    expect(Buffer.concat(await received).length).toBe(2_000_000);
    await call.result;
    server.close();
  });

  it('is refused where nothing listens, and to the port of the proxy', async () => {
    await using agent = startAgent();
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    await expect(open(agent.channel, port).call.head).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await expect(open(agent.channel, 3128).call.head).rejects.toMatchObject({ code: 'PORT_REFUSED' });
  });
});
