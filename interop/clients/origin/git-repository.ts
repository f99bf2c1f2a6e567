// Smart HTTP of git for one bare repository: the requests go to git's own `http-backend` as CGI.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type OriginRequest, type OriginResponse, writeHead } from './origin-response.ts';

const IDENTITY = ['-c', 'user.name=agent', '-c', 'user.email=agent@example.test'];

/** Makes `repository.git` with one commit in the folder. */
export function createRepository(folder: string): void {
  const git = (cwd: string, ...args: string[]): void =>
    void execFileSync('git', [...IDENTITY, ...args], { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
  const bare = join(folder, 'repository.git');
  git(folder, 'init', '--quiet', '--bare', '--initial-branch', 'main', bare);
  git(bare, 'config', 'http.receivepack', 'true');
  const work = mkdtempSync(join(folder, 'work-'));
  git(work, 'init', '--quiet', '--initial-branch', 'main');
  writeFileSync(join(work, 'README'), 'a repository\n');
  git(work, 'add', '.');
  git(work, 'commit', '--quiet', '--message', 'first');
  git(work, 'push', '--quiet', bare, 'main');
}

export function respondAsGit(folder: string, request: OriginRequest, response: OriginResponse): void {
  const url = new URL(request.url ?? '/', 'https://git.test');
  const { headers } = request;
  const backend = spawn('git', ['http-backend'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      PATH: process.env['PATH'],
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method,
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: headers['content-type'] ?? '',
      CONTENT_LENGTH: headers['content-length'] ?? '',
      HTTP_CONTENT_ENCODING: String(headers['content-encoding'] ?? ''),
      GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
      REMOTE_USER: 'agent',
      REMOTE_ADDR: '127.0.0.1',
    },
  });
  request.pipe(backend.stdin);
  backend.stdin.on('error', () => request.unpipe());
  let head: Buffer = Buffer.alloc(0);
  let isHeadSent = false;
  const write = response.write.bind(response) as (bytes: Buffer) => boolean;
  backend.stdout.on('data', (bytes: Buffer) => {
    if (isHeadSent) return void write(bytes);
    head = Buffer.concat([head, bytes]);
    const end = head.indexOf('\r\n\r\n');
    if (end === -1) return;
    isHeadSent = true;
    sendHead(response, head.toString('latin1', 0, end));
    write(head.subarray(end + 4));
  });
  backend.stdout.on('end', () => response.end());
}

function sendHead(response: OriginResponse, text: string): void {
  const lines = text.split('\r\n').map((line) => line.split(/: (.*)/s, 2) as [string, string]);
  const fields = Object.fromEntries(lines.map(([name, value]) => [name.toLowerCase(), value]));
  const { status = '200', ...headers } = fields;
  writeHead(response, Number.parseInt(status, 10), headers);
}
