// Starts a deployment of this folder on the public server or on Sallyport, each in a copy of its own, and ends it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const here = import.meta.dirname;
const root = join(here, '..', '..');

/** The server to measure everything by: `@langchain/langgraph-api`, in memory. */
export async function startPeer(deployment, { config = 'langgraph.json', jobs = 10, env = {} } = {}) {
  const directory = await copyOf(deployment);
  const { graphs, auth, http } = JSON.parse(await readFile(join(directory, config), 'utf8'));
  const port = await freePort();
  const payload = { port, nWorkers: jobs, host: '127.0.0.1', cwd: directory, graphs, auth, http };
  const dist = join(here, 'node_modules', '@langchain', 'langgraph-api', 'dist');
  // One process: the command of tsx would start another one, which outlives it.
  const tsx = import.meta.resolve('tsx');
  const args = [
    '--import',
    tsx,
    '--import',
    join(dist, 'preload.mjs'),
    join(dist, 'cli', 'entrypoint.mjs'),
    '0',
  ];
  const child = start(process.execPath, [...args, JSON.stringify(payload)], directory, {
    GREETING: 'hello',
    NODE_ENV: 'development',
    ...env,
  });
  return ready(child, directory, `http://127.0.0.1:${port}`, /Server running at/);
}

/** `sallyport agent-server` of this checkout, with a database of its own. */
export async function startSallyport(deployment, { config = 'langgraph.json', jobs = 10, env = {} } = {}) {
  const directory = await copyOf(deployment);
  const port = await freePort();
  const program = process.env.SALLYPORT_PROGRAM ?? join(root, 'bin', 'sallyport.js');
  const { auth: hasAuth } = JSON.parse(await readFile(join(directory, config), 'utf8'));
  const args = [
    program,
    'agent-server',
    '--config',
    join(directory, config),
    '--listen',
    `127.0.0.1:${port}`,
  ];
  const child = start(process.execPath, args, directory, {
    SALLYPORT_AGENT_DATA_DIR: join(directory, 'data'),
    // Without a handler of its own a deployment must say that everybody may use it.
    ...(hasAuth ? {} : { SALLYPORT_AGENT_AUTH: 'none' }),
    N_JOBS_PER_WORKER: String(jobs),
    ...env,
  });
  return ready(child, directory, `http://127.0.0.1:${port}`, /"msg":"ready"/);
}

async function copyOf(deployment) {
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-agent-'));
  // PostgreSQL does not run as root: it must be able to enter.
  await chmod(directory, 0o711);
  await cp(join(here, 'deployments', deployment), directory, { recursive: true });
  await symlink(join(here, 'node_modules'), join(directory, 'node_modules'));
  return directory;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

function start(command, args, cwd, env) {
  const { PATH, HOME } = process.env;
  return spawn(command, args, { cwd, env: { PATH, HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function ready(child, directory, url, sign) {
  const log = [];
  const exited = once(child, 'exit');
  const { promise, resolve, reject } = Promise.withResolvers();
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => {
      log.push(line);
      if (sign.test(line)) resolve();
    });
  exited.then(([code]) => reject(new Error(`the server ended with ${code}\n${log.join('\n')}`)));
  const close = async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(timer);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await promise;
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  return { url, pid: child.pid, log, close };
}
