// A shell in which a page is followed: a network of its own without the internet, where names of the pages lead to a local
// server, so that commands run as they are written, ports and hosts included.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { createScratch } from '../../support/scratch.ts';
import { cleanEnvironment, program } from '../../support/spawned-process.ts';

export type PageShell = AsyncDisposable & {
  /** Every request that the server got: host, path and Authorization. */
  requests(): Promise<readonly string[]>;
  /** A session in an empty directory. */
  open(): Promise<Session>;
};

export type Session = AsyncDisposable & {
  write(name: string, text: string): Promise<void>;
  run(command: string): Promise<{ readonly code: number; readonly output: string }>;
  /** Starts it; the function returns what it has printed so far. */
  start(command: string): Promise<() => Promise<string>>;
};

/** Throws an Error that says what the machine lacks. */
export async function createPageShell(names: readonly string[]): Promise<PageShell> {
  const scratch = await createScratch();
  const hosts = await scratch.write('hosts', `127.0.0.1 localhost ${names.join(' ')}\n`);
  const log = join(scratch.path, 'requests');
  const ca = join(scratch.path, 'internet.pem');
  const bin = join(scratch.path, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'sallyport'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
  await chmod(join(bin, 'sallyport'), 0o755);
  const holder = spawn(
    'unshare',
    [
      ...['--user', '--map-root-user', '--net', '--mount', 'sh', '-c'],
      'mount --bind "$1" /etc/hosts && ip link set lo up && exec "$2" "$3" "$4" "$5"',
      ...['sh', hosts, process.execPath, join(import.meta.dirname, 'local-internet.ts'), ca, log],
    ],
    { env: cleanEnvironment(), stdio: ['pipe', 'pipe', 'pipe'] },
  );
  let complaint = '';
  holder.stderr.on('data', (text: Buffer) => (complaint += text.toString()));
  const exited = once(holder, 'close');
  await Promise.race([once(holder.stdout, 'data').catch(() => undefined), exited.catch(() => undefined)]);
  if (holder.pid === undefined || holder.exitCode !== null)
    throw new Error(
      `this machine makes no network namespaces, which the test needs: install util-linux and iproute2, and allow user namespaces (${complaint.trim()})`,
    );
  const { pid } = holder;
  const path = `${bin}:${dirname(process.execPath)}:${process.env['PATH'] ?? '/usr/bin:/bin'}`;
  return {
    requests: async () => (await readFile(log, 'utf8')).trim().split('\n'),
    open: () => openSession(pid, { PATH: path, SSL_CERT_FILE: ca }),
    async [Symbol.asyncDispose]() {
      holder.kill('SIGKILL');
      await exited;
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const LIMIT_MS = 30_000;

async function openSession(pid: number, env: Readonly<Record<string, string>>): Promise<Session> {
  const scratch = await createScratch();
  const outputs = await createScratch();
  const enter = [`--target=${pid}`, '--user', '--preserve-credentials', '--mount', '--net'];
  const shell: ChildProcess = spawn('nsenter', [...enter, '--', 'bash', '--noprofile', '--norc'], {
    cwd: scratch.path,
    env: cleanEnvironment({ ...env, HOME: scratch.path }),
    stdio: ['pipe', 'pipe', 'ignore'],
    // Its jobs are in its process group, which ends as one.
    detached: true,
  });
  const { stdin, stdout } = shell;
  if (stdin === null || stdout === null) throw new Error('the shell has no pipes');
  const exited = once(shell, 'close');
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  // The directory of nsenter's --mount is the root.
  stdin.write(`cd '${scratch.path}'\n`);
  let count = 0;
  const send = async (text: string): Promise<string> => {
    stdin.write(`${text}\n`);
    // A command that does not end is no command of a page: its session ends.
    const { promise, reject } = Promise.withResolvers<never>();
    const limit = setTimeout(() => reject(new Error(`did not end in ${LIMIT_MS} ms: ${text}`)), LIMIT_MS);
    const { value, done } = await Promise.race([lines.next(), promise]).finally(() => clearTimeout(limit));
    if (done === true) throw new Error('the shell ended');
    return value;
  };
  return {
    async write(name, text) {
      await writeFile(join(scratch.path, name), text);
    },
    async run(command) {
      const file = join(outputs.path, String((count += 1)));
      const code = await send(`{ ${command}\n} > '${file}' 2>&1 < /dev/null; echo $?`);
      return { code: Number(code), output: await readFile(file, 'utf8') };
    },
    async start(command) {
      const file = join(outputs.path, String((count += 1)));
      await send(`{ ${command}\n} > '${file}' 2>&1 < /dev/null & echo started`);
      return () => readFile(file, 'utf8');
    },
    async [Symbol.asyncDispose]() {
      process.kill(-(shell.pid ?? 0), 'SIGKILL');
      await exited;
      await scratch[Symbol.asyncDispose]();
      await outputs[Symbol.asyncDispose]();
    },
  };
}
