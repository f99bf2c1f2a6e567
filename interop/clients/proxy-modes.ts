// The ways in which a command reaches the proxy: `sallyport run`, and `sallyport proxy` with a token for the lifetime of the suite.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ProxyRecord } from './verdict.ts';

export type ProxyFiles = { readonly folder: string; readonly program: string };

/** Files of the suite, in its own folder. */
export function writeProxyFiles(
  files: ProxyFiles,
  content: { readonly proxyConfig: unknown; readonly secretLines: string; readonly upstreamCaPem: string },
): void {
  const write = (name: string, text: string): void =>
    writeFileSync(join(files.folder, name), text, { mode: 0o600 });
  write('rules.json', JSON.stringify(content.proxyConfig));
  write('secrets.env', content.secretLines);
  write('upstream-ca.pem', content.upstreamCaPem);
  write('config.json', JSON.stringify({ upstream: { ca_file: join(files.folder, 'upstream-ca.pem') } }));
}

function options({ folder }: ProxyFiles): readonly string[] {
  const at = (name: string): string => join(folder, name);
  return [
    ...['--config', at('config.json'), '--proxy-config', at('rules.json')],
    ...['--secrets-file', at('secrets.env')],
  ];
}

/** The command behind `run`, and the file with its records. */
export function behindRun(
  files: ProxyFiles,
  command: readonly string[],
): { readonly command: readonly string[]; readonly log: string } {
  const log = join(files.folder, 'run.log');
  rmSync(log, { force: true });
  const run = [process.execPath, files.program, 'run', ...options(files), '--log', log, '--', ...command];
  return { command: run, log };
}

export function readRecords(log: string): readonly ProxyRecord[] {
  let text = '';
  try {
    text = readFileSync(log, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const lines = text.split('\n').filter((line) => line !== '');
  return lines
    .map((line) => JSON.parse(line) as ProxyRecord & { readonly msg?: string })
    .filter(({ msg }) => msg === 'exchange');
}

export type TokenProxy = AsyncDisposable & {
  /** What `sallyport env` sets, with the token in the URL of the proxy. */
  readonly variables: Readonly<Record<string, string>>;
};

export async function startTokenProxy(
  files: ProxyFiles,
  env: Readonly<Record<string, string>>,
): Promise<TokenProxy> {
  const { folder, program } = files;
  const token = join(folder, 'token');
  writeFileSync(token, randomBytes(24).toString('base64url'), { mode: 0o600 });
  const settings = {
    ...env,
    SALLYPORT_LISTEN: '127.0.0.1:3128',
    SALLYPORT_ADMIN_LISTEN: 'off',
    SALLYPORT_AUTH_TOKEN_FILE: token,
    SALLYPORT_STATE_DIR: join(folder, 'state'),
  };
  const child = spawn(process.execPath, [program, 'proxy', ...options(files)], {
    env: settings,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      if (line.includes('"msg":"ready"')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`sallyport proxy ended with ${code} before it was ready`)));
  });
  const args = ['env', '--config', join(folder, 'config.json'), '--proxy-config', join(folder, 'rules.json')];
  const written = ['--write', join(folder, 'env'), '--format', 'json'];
  const printed = execFileSync(process.execPath, [program, ...args, ...written], { env: settings });
  return {
    variables: JSON.parse(printed.toString()) as Record<string, string>,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
