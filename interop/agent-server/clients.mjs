// Runs the public clients as processes, each against a server of its own, and ends with 1 when a case of one failed.
//
//   node clients.mjs PYTHON [--peer]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { startPeer, startSallyport } from './servers.mjs';

const python = process.argv[2];
const start = process.argv.includes('--peer') ? startPeer : startSallyport;
const file = (name) => join(import.meta.dirname, 'clients', name);
const clients = [
  ['@langchain/langgraph-sdk', [process.execPath, file('javascript.mjs')], 'langgraph.json'],
  ['RemoteGraph', [process.execPath, file('remote-graph.mjs')], 'langgraph.json'],
  ['langgraph-sdk for Python', [python, file('python_client.py')], 'langgraph.json'],
  ['@langchain/langgraph-sdk, two users', [process.execPath, file('two-users.mjs')], 'langgraph.auth.json'],
];

let failed = 0;
for (const [name, [command, ...args], config] of clients) {
  console.log(`== ${name}`);
  const server = await start('typescript', { config });
  const client = spawn(command, [...args, server.url], { stdio: 'inherit' });
  const [code] = await once(client, 'exit');
  if (code !== 0) failed += 1;
  await server.close();
}
process.exit(failed === 0 ? 0 : 1);
