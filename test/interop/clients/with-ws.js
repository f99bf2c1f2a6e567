// The ws package through the proxy: URL. Sends two messages, prints the received messages, closes.
import { Agent as ClearAgent } from 'node:http';
import { Agent } from 'node:https';
import { WebSocket } from 'ws';

const [url] = process.argv.slice(2);
const options = { proxyEnv: process.env };
const agent = url.startsWith('wss:') ? new Agent(options) : new ClearAgent(options);
const socket = new WebSocket(url, { agent });
const received = [];
socket.on('open', () => socket.send('one'));
socket.on('message', (message) => {
  received.push(String(message));
  if (received.length === 1) socket.send(Buffer.alloc(70_000, 'x'));
  else socket.close(1000, 'done');
});
socket.on('close', (code) =>
  console.log(JSON.stringify({ code, first: received[0], bytes: received[1]?.length })),
);
