// A program that behaves as an agent server to its runner, and starts at once. What it does besides is in its variables.
import { readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';

const input = JSON.parse(readFileSync(3, 'utf8'));
const listen = process.argv[process.argv.indexOf('--listen') + 1] ?? '';
const path = listen.slice('unix:'.length);
const mode: string | undefined = input.variables.MODE;
const state = { draining: false, requests: 0, streams: 0, runs: 0 };

if (mode === 'ends') {
  process.stderr.write('no such graph\n');
  process.exit(3);
}
const server = createServer((request, response) => {
  const isControl = request.headers['x-sallyport-control-token'] === input.deployment.gatewayToken;
  if (request.url === '/ok?check_db=1') response.statusCode = mode === 'never ready' ? 503 : 200;
  else if (request.url === '/internal/drain' && isControl) {
    state.draining = true;
    response.statusCode = 202;
  } else if (request.url === '/internal/status' && isControl) response.write(JSON.stringify(state));
  else response.write(JSON.stringify({ revision: input.deployment.revisionId, variables: input.variables }));
  response.end();
});
if (mode === 'link') {
  symlinkSync('/run/admin.sock', path);
  setInterval(() => undefined, 60_000);
} else
  server.listen(path, () =>
    process.stdout.write(`${JSON.stringify({ level: 'info', msg: 'ready', pid: 1 })}\n`),
  );
process.on('SIGTERM', () => process.exit(0));
