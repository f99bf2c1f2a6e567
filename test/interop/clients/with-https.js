// node:https with an agent for the proxy, two requests with it: URL [FILE to POST].
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';

const [url, file] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, proxyEnv: process.env });

function ask() {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: 'from-the-client' };
    const sent = request(url, { agent, headers, method: file ? 'POST' : 'GET' }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece) => (text += piece));
      response.on('end', () => resolve({ status: response.statusCode, text }));
    });
    sent.on('error', reject);
    sent.end(file && readFileSync(file));
  });
}

await ask();
console.log(JSON.stringify(await ask()));
agent.destroy();
