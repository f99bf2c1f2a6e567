// git over HTTPS with its smart protocol, from a repository that git itself serves (git http-backend): a clone is several
// requests with one credential, a compressed POST and a binary response.
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { headerValues } from '../support/message-reader.ts';
import type { Exchange } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { cleanEnvironment, runToEnd } from '../support/spawned-process.ts';
import { isInstalled, runClient, titleOf } from './client-programs.ts';
import { createScene, credentialsAt, INJECTED, SECRET } from './interop-scene.ts';

const identity = {
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@test',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@test',
};

async function git(cwd: string, ...args: readonly string[]): Promise<void> {
  const { code, stderr } = await runToEnd('git', args, {
    cwd,
    env: { ...identity, GIT_CONFIG_GLOBAL: '/dev/null' },
  });
  if (code !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
}

/** Runs the CGI program of git for one exchange; its output is a head without a status line, then the body. */
async function serveRepository(exchange: Exchange, root: string): Promise<void> {
  const { request } = exchange;
  const { content } = await exchange.readBody();
  const [path = '', query = ''] = request.target.split('?');
  const child = spawn('git', ['http-backend'], {
    env: cleanEnvironment({
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: headerValues(request, 'content-type').join(),
      CONTENT_LENGTH: String(content.length),
      HTTP_CONTENT_ENCODING: headerValues(request, 'content-encoding').join(),
      GIT_PROTOCOL: headerValues(request, 'git-protocol').join(),
    }),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(content);
  const output = Buffer.concat(await Array.fromAsync<Buffer>(child.stdout));
  const blank = output.indexOf('\r\n\r\n');
  const head = output.subarray(0, blank).toString('latin1');
  const body = output.subarray(blank + 4);
  await exchange.send(`HTTP/1.1 200 OK\r\n${head}\r\nContent-Length: ${body.length}\r\n\r\n`);
  await exchange.send(body);
}

describe.runIf(isInstalled('git'))(titleOf('git'), () => {
  it('clones over HTTPS with a credential that it does not have', async () => {
    await using scratch = await createScratch();
    const work = join(scratch.path, 'work');
    const text = 'line of a file\n'.repeat(20_000);
    await git(scratch.path, 'init', '--quiet', 'work');
    await scratch.write('work/file.txt', text);
    await git(work, 'add', '.');
    await git(work, 'commit', '--quiet', '-m', 'first');
    await git(scratch.path, 'clone', '--quiet', '--bare', 'work', 'repository.git');

    await using scene = await createScene({ respond: (exchange) => serveRepository(exchange, scratch.path) });
    const clone = join(scratch.path, 'clone');
    const url = `https://good.test:${scene.origin.port}/repository.git`;
    const { code, stdout, stderr } = await runClient('git', ['clone', '--no-local', url, clone], scene.proxy);
    expect(code, stderr).toBe(0);
    expect(await readFile(join(clone, 'file.txt'), 'utf8')).toBe(text);
    expect(await readFile(join(clone, '.git', 'config'), 'utf8')).not.toContain(SECRET);
    expect(stdout + stderr).not.toContain(SECRET);
    const seen = credentialsAt(scene.origin);
    expect(seen.length).toBeGreaterThanOrEqual(2);
    expect(seen.filter((values) => values.join() !== INJECTED)).toEqual([]);
  });
});
