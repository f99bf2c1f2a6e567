// S3 servers that check signatures: versitygw, where there is Go to build it, and the server of moto with its checks of rights. Each has
// a bucket, credentials that may do everything, and some that may only put.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const VERSITYGW = 'v1.8.0';
const ROOT = { accessKeyId: 'AKIAROOTROOTROOTROOT', secretAccessKey: 'root-secret-of-the-gateway' };
export const bucket = 'exported-traces';
/** Resolved to this machine by `exports.mjs`. */
export const virtualDomain = 's3.test';

export async function startServers(cleanup, { python, folder, cache }) {
  const servers = [await startMoto(cleanup, python)];
  const gateway = findGateway(cache);
  if (gateway === undefined) console.log('without versitygw: there is no Go to build it');
  else servers.unshift(await startGateway(cleanup, gateway, folder));
  return servers;
}

function findGateway(cache) {
  const program = join(cache, `versitygw-${VERSITYGW}`, 'versitygw');
  if (existsSync(program)) return program;
  const env = { ...process.env, GOBIN: join(program, '..') };
  const name = `github.com/versity/versitygw/cmd/versitygw@${VERSITYGW}`;
  const { status, error } = spawnSync('go', ['install', name], { env, stdio: 'inherit' });
  return error === undefined && status === 0 ? program : undefined;
}

async function startGateway(cleanup, program, folder) {
  const [port, adminPort, data, users] = [
    await findPort(),
    await findPort(),
    join(folder, 'data'),
    join(folder, 'users'),
  ];
  for (const one of [data, join(data, bucket), users]) await mkdir(one);
  const limits = [
    '--port',
    `127.0.0.1:${port}`,
    '--admin-port',
    `127.0.0.1:${adminPort}`,
    '--quiet',
    '--iam-dir',
    users,
  ];
  const args = [...limits, '--virtual-domain', `${virtualDomain}:${port}`, 'posix', '--sidecar', users, data];
  const env = {
    ...process.env,
    ROOT_ACCESS_KEY_ID: ROOT.accessKeyId,
    ROOT_SECRET_ACCESS_KEY: ROOT.secretAccessKey,
  };
  await startProcess(cleanup, program, args, env, port);
  return {
    name: `versitygw ${VERSITYGW}`,
    port,
    endpoint: `http://127.0.0.1:${port}`,
    virtual: `http://${virtualDomain}:${port}`,
    full: ROOT,
    checksNames: true,
    data: join(data, bucket),
  };
}

async function startMoto(cleanup, python) {
  const port = await findPort();
  // Whoever calls before the checks begin makes users and rights.
  const env = { ...process.env, INITIAL_NO_AUTH_ACTION_COUNT: '100000' };
  await startProcess(
    cleanup,
    join(python, '..', 'moto_server'),
    ['-H', '127.0.0.1', '-p', String(port)],
    env,
    port,
  );
  const endpoint = `http://127.0.0.1:${port}`;
  const script = join(import.meta.dirname, 'moto_setup.py');
  const { status, stdout, stderr } = spawnSync(python, [script, endpoint, bucket], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`moto was not prepared:\n${stderr}`);
  return { endpoint, port, ...JSON.parse(stdout) };
}

async function startProcess(cleanup, command, args, env, port) {
  const child = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
  const exited = once(child, 'exit');
  cleanup.defer(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  for (let tries = 0; tries < 300 && child.exitCode === null; tries += 1) {
    if (
      await fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      )
    )
      return;
    await delay(100);
  }
  throw new Error(`${command} does not start:\n${output}`);
}

export async function findPort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
