// Bare http-proxy-3 as a separate program: node:http parses, one keep-alive agent connects to one target, upgrades are passed on.
// It is the second subject of the framing rows.
import { Agent, createServer, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createProxyServer } from 'http-proxy-3';

export type BareCommand = { readonly target: string } | { readonly settle: true };
export type BareReply = { readonly port?: number };

const agent = new Agent({ keepAlive: true });

process.on('message', (command: BareCommand) => {
  if ('target' in command) return start(command.target);
  // Between two rows: nothing of the last row may still be in progress during the next.
  agent.destroy();
  process.send?.({});
});

function start(target: string): void {
  const proxy = createProxyServer({ target, agent, proxyTimeout: 5_000 });
  proxy.on('error', (_, __, response) => {
    if (!(response instanceof ServerResponse)) return void (response as Socket).destroy();
    if (!response.headersSent) response.writeHead(502);
    response.end();
  });
  const server = createServer((request, response) => proxy.web(request, response));
  server.on('upgrade', (request, socket, head) => proxy.ws(request, socket as Socket, head));
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
}
