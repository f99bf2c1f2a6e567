// The ws package through the proxy: URL. Sends two messages, prints what came back, closes.
import { Agent } from 'node:https';
import { WebSocket } from 'ws';

const [url] = process.argv.slice(2);
const socket = new WebSocket(url, { agent: new Agent({ proxyEnv: process.env }) });
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
