// `sallyport proxy` with a parent that hands over listeners: it needs one, serves what it hands over, and ends with it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openNamespaceListener } from '../../src/box-host/listeners/namespace-listener.ts';
import { createNetworkNamespace } from '../support/network-namespace.ts';
import { createScratch } from '../support/scratch.ts';
import { cleanEnvironment, program, runToEnd } from '../support/spawned-process.ts';

function variables(directory: string): Record<string, string> {
  return {
    SALLYPORT_LISTEN: '127.0.0.1:0',
    SALLYPORT_ADMIN_LISTEN: `unix:${join(directory, 'admin.sock')}`,
    SALLYPORT_STATE_DIR: directory,
    SALLYPORT_SANDBOXES_NAMESPACES: 'true',
  };
}

async function startWithChannel(directory: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, 'proxy'], {
    env: cleanEnvironment(variables(directory)),
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  let text = '';
  for await (const chunk of child.stdout?.iterator({ destroyOnReturn: false }) ?? []) {
    text += String(chunk);
    if (text.includes('"msg":"ready"')) break;
  }
  child.stdout?.resume();
  return child;
}

async function post(directory: string, document: unknown): Promise<number> {
  const token = (await readFile(join(directory, 'secret', 'admin-token'), 'utf8')).trim();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const socketPath = join(directory, 'admin.sock');
  const asked = requestHttp({ socketPath, method: 'POST', path: '/v1/sandboxes', headers }, (response) => {
    response.resume().on('end', () => resolve(response.statusCode ?? 0));
  });
  asked.on('error', reject).end(JSON.stringify(document));
  return promise;
}

describe('a sidecar with sandboxes.namespaces', () => {
  it('does not start without a parent that can hand over listeners', async () => {
    await using scratch = await createScratch();
    const ended = await runToEnd(process.execPath, [program, 'proxy'], { env: variables(scratch.path) });
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain(
      'sandboxes.namespaces (SALLYPORT_SANDBOXES_NAMESPACES) needs a parent process',
    );
  });

  it('serves a listener that it was handed, and ends when its parent is gone', async () => {
    await using scratch = await createScratch();
    await using space = await createNetworkNamespace();
    const child = await startWithChannel(scratch.path);
    const listener = await openNamespaceListener(space, { host: '127.0.0.1', port: 3128 });
    const reference = 'reference-of-the-test-1';
    await new Promise<void>((resolve, reject) =>
      child.send({ type: 'listener', reference, sandbox: 'box' }, listener.handle as never, (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    listener.close();
    const probe = (): ReturnType<typeof space.run> =>
      space.run('curl', ['-sS', '--max-time', '20', 'http://127.0.0.1:3128/healthz']);
    const waiting = probe();
    expect(await post(scratch.path, { id: 'box', listen: { handed_over: reference } })).toBe(201);
    // Connected before the sandbox existed: the socket listens from the moment that it was opened.
    expect((await waiting).stdout).toBe('ok\n');
    const exited = once(child, 'exit');
    child.disconnect();
    expect(await exited).toEqual([0, null]);
    expect((await probe()).code).toBe(7);
  });
});
