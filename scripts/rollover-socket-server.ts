// A program that is an agent server to its runner and speaks WebSocket to its clients, which the applications of deployments cannot: it
// sends each message back with the number of its revision.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';
import {
  AGENT_FIELDS,
  type AgentInput,
  DRAIN_PATH,
  STATUS_PATH,
} from '../src/platform/agent-server/contract.ts';

const input: AgentInput = JSON.parse(readFileSync(Number(process.env['SALLYPORT_AGENT_INPUT']), 'utf8'));
const path = (process.argv[process.argv.indexOf('--listen') + 1] ?? '').slice('unix:'.length);
const { gatewayToken } = input.deployment;
const revision = input.variables['REVISION'] ?? '';
let draining = false;

const server = createServer((request, response) => {
  const isControl = request.headers[AGENT_FIELDS.control] === gatewayToken;
  if (!isControl) response.statusCode = 404;
  else if (request.url === DRAIN_PATH) {
    draining = true;
    response.statusCode = 202;
  } else if (request.url?.startsWith(STATUS_PATH))
    response.write(JSON.stringify({ draining, requests: 0, streams: 0, runs: 0 }));
  response.end();
});
const sockets = new WebSocketServer({ noServer: true });
server.on('upgrade', (request, socket, head) => {
  // No request comes here after the drain began.
  if (draining || request.headers[AGENT_FIELDS.gateway] !== gatewayToken) return void socket.destroy();
  sockets.handleUpgrade(request, socket, head, (one) =>
    one.on('message', (data) => one.send(`${revision} ${String(data)}`)),
  );
});
server.listen(path);
process.on('SIGTERM', () => process.exit(0));
