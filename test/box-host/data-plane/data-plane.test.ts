// The data plane over HTTP: commands, files, searches, and the forms of its errors.
import { chmod, mkdir, readFile, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { createDataPlaneScene, type DataPlaneScene } from './data-plane-scene.ts';

let scene: DataPlaneScene;
let scratch: Scratch;
beforeAll(async () => {
  scene = await createDataPlaneScene();
  scratch = await createScratch();
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  await scratch[Symbol.asyncDispose]();
});

const at = (...names: readonly string[]): string => join(scratch.path, ...names);
const fileUrl = (operation: string, path: string): string =>
  `${scene.url}/${operation}?path=${encodeURIComponent(path)}`;

// oxlint-disable-next-line typescript/no-explicit-any
const jsonOf = async (response: Response): Promise<any> => JSON.parse(await response.text());

async function post(operation: string, body: unknown) {
  const response = await fetch(`${scene.url}/${operation}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, body: await jsonOf(response) };
}

async function upload(path: string, content: string | Uint8Array<ArrayBuffer>, name = 'file') {
  const form = new FormData();
  form.append(name, new Blob([content]), 'file');
  const response = await fetch(fileUrl('upload', path), { method: 'POST', body: form });
  return { status: response.status, body: await jsonOf(response) };
}

describe('POST /execute', () => {
  it('returns output and exit code', async () => {
    expect(
      await post('execute', {
        command: 'echo $A; pwd; echo e >&2; exit 4',
        env: { A: 'b' },
        cwd: scratch.path,
      }),
    ).toEqual({
      status: 200,
      body: { stdout: `b\n${scratch.path}\n`, stderr: 'e\n', exit_code: 4 },
    });
  });

  it('takes what the command runs with from run_config', async () => {
    const run_config = { work_dir: scratch.path, env_vars: { A: 'c' } };
    expect((await post('execute', { command: 'echo $A; pwd', run_config })).body.stdout).toBe(
      `c\n${scratch.path}\n`,
    );
  });

  it('returns the end of a long output and says so', async () => {
    const { body } = await post('execute', { command: 'yes | head -c 3000000; echo end' });
    expect([body.stdout.length, body.stdout.slice(-4), body.stdout_truncated, body.stderr_truncated]).toEqual(
      [1024 * 1024, 'end\n', true, undefined],
    );
  });

  it('kills the command when its time is over', async () => {
    expect(await post('execute', { command: 'sleep 1000', timeout: 1 })).toMatchObject({
      status: 408,
      body: { detail: { error: 'CommandTimeout' } },
    });
  });

  it('kills the command when the client leaves', async () => {
    const left = new AbortController();
    const pidFile = at('pid');
    const sent = fetch(`${scene.url}/execute`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ command: `echo $$ > ${pidFile}; exec sleep 1000` }),
      signal: left.signal,
    });
    await expect.poll(() => readFile(pidFile, 'utf8').catch(() => '')).toMatch(/\n/);
    left.abort();
    await expect(sent).rejects.toThrow('aborted');
    const pid = (await readFile(pidFile, 'utf8')).trim();
    await expect
      .poll(async () => (await post('execute', { command: `kill -0 ${pid}` })).body.exit_code)
      .toBe(1);
  });

  it.each<[string, unknown, number, object]>([
    ['a missing directory', { command: 'x', cwd: '/nonexistent' }, 400, { error: 'CommandError' }],
    ['a missing shell', { command: 'x', shell: '/nonexistent' }, 400, { error: 'CommandError' }],
    ['both spellings', { command: 'x', cwd: '/', run_config: {} }, 400, { error: 'InvalidRequest' }],
    ['another user', { command: 'x', run_config: { user: 'root' } }, 501, { error: 'NotSupported' }],
  ])('refuses %s', async (_, body, status, detail) => {
    expect(await post('execute', body)).toMatchObject({ status, body: { detail } });
  });

  it.each<[string, unknown, readonly (string | number)[]]>([
    ['no command', {}, ['body', 'command']],
    ['a command with NUL', { command: 'a\0' }, ['body', 'command']],
    ['a variable with an equals sign', { command: 'x', env: { 'A=B': 'c' } }, ['body', 'env', 'A=B']],
    [
      'a variable __proto__',
      { command: 'x', env: JSON.parse('{"__proto__": "c"}') },
      ['body', 'env', '__proto__'],
    ],
    ['a list of variables', { command: 'x', env: ['a'] }, ['body', 'env']],
    ['a timeout that is no number', { command: 'x', timeout: 'soon' }, ['body', 'timeout']],
    ['no JSON', '{', ['body']],
    ['deep JSON', '['.repeat(100_000), ['body']],
  ])('has an issue for %s', async (_, body, loc) => {
    const response = await post('execute', body);
    expect(response.status).toBe(422);
    expect(response.body.detail[0]).toMatchObject({ loc, type: 'value_error' });
  });

  it('takes JSON alone, and not a megabyte more', async () => {
    const form = await fetch(`${scene.url}/execute`, { method: 'POST', body: 'command=x' });
    expect(form.status).toBe(415);
    expect((await post('execute', { command: 'x'.repeat(1_100_000) })).status).toBe(413);
  });
});

describe('files', () => {
  it('are uploaded and downloaded', async () => {
    const content = crypto.getRandomValues(new Uint8Array(65_000));
    expect(await upload(at('new', 'file.bin'), content)).toEqual({
      status: 200,
      body: { path: at('new', 'file.bin'), size_bytes: 65_000 },
    });
    const response = await fetch(fileUrl('download', at('new', 'file.bin')));
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(content);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'x-content-type-options': 'nosniff',
      'content-length': '65000',
      'accept-ranges': 'bytes',
      etag: expect.stringMatching(/^"[\w-]{32}"$/),
      'last-modified': new Date(Math.floor((await stat(at('new', 'file.bin'))).mtimeMs)).toUTCString(),
    });
  });

  it('are large', async () => {
    const content = new Uint8Array(5_000_000).fill(65);
    await upload(at('large'), content);
    expect((await (await fetch(fileUrl('download', at('large')))).arrayBuffer()).byteLength).toBe(5_000_000);
  });

  it('are described by HEAD', async () => {
    await upload(at('described'), '0123456789');
    const response = await fetch(fileUrl('download', at('described')), { method: 'HEAD' });
    expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([
      200,
      '10',
      '',
    ]);
  });

  it('are read by ranges with validators', async () => {
    await upload(at('ranges'), '0123456789');
    const get = async (headers: Record<string, string>) => {
      const response = await fetch(fileUrl('download', at('ranges')), { headers });
      return [response.status, await response.text(), response.headers.get('content-range')];
    };
    const etag = (await fetch(fileUrl('download', at('ranges')))).headers.get('etag') ?? '';
    expect(await get({ Range: 'bytes=2-4' })).toEqual([206, '234', 'bytes 2-4/10']);
    expect(await get({ Range: 'bytes=7-' })).toEqual([206, '789', 'bytes 7-9/10']);
    expect(await get({ Range: 'bytes=-3' })).toEqual([206, '789', 'bytes 7-9/10']);
    expect(await get({ Range: 'bytes=2-4', 'If-Range': etag })).toEqual([206, '234', 'bytes 2-4/10']);
    expect(await get({ Range: 'bytes=2-4', 'If-Range': '"old"' })).toEqual([200, '0123456789', null]);
    expect((await get({ Range: 'bytes=10-' })).slice(0, 1)).toEqual([416]);
    expect((await get({ Range: 'bytes=10-' }))[2]).toBe('bytes */10');
    expect(await get({ 'If-None-Match': etag })).toEqual([304, '', null]);
    await upload(at('ranges'), 'abcdefghij');
    expect(await get({ 'If-None-Match': etag })).toEqual([200, 'abcdefghij', null]);
    expect(await get({ Range: 'bytes=2-4', 'If-Range': etag })).toEqual([200, 'abcdefghij', null]);
  });

  it('that are missing, no files or not allowed are named as clients know it', async () => {
    await mkdir(at('folder'), { recursive: true });
    const get = async (path: string) => {
      const response = await fetch(fileUrl('download', path));
      return [response.status, (await jsonOf(response)).detail.error];
    };
    expect(await get(at('none'))).toEqual([404, 'FileNotFound']);
    expect(await get(at('folder'))).toEqual([400, 'ReadError']);
    expect(await upload(at('folder'), 'x')).toMatchObject({
      status: 400,
      body: { detail: { error: 'WriteError' } },
    });
    expect(await upload('/proc/x/y', 'x')).toMatchObject({
      status: 404,
      body: { detail: { error: 'FileNotFound' } },
    });
    expect((await fetch(`${scene.url}/download`)).status).toBe(422);
    expect((await fetch(fileUrl('download', 'a\0b'))).status).toBe(422);
  });

  it('without the part file are refused, and nothing is written', async () => {
    const response = await upload(at('other'), 'x', 'other');
    expect(response).toEqual({
      status: 422,
      body: { detail: [{ loc: ['body', 'file'], msg: 'Field required', type: 'missing' }] },
    });
    await expect(stat(at('other'))).rejects.toThrow('ENOENT');
    expect((await fetch(fileUrl('upload', at('other')), { method: 'POST', body: 'x' })).status).toBe(415);
  });

  it('whose upload is cut off stay as they were', async () => {
    await upload(at('kept'), 'old');
    await chmod(at('kept'), 0o600);
    const socket = connect(scene.port, '127.0.0.1');
    socket.write(
      `POST /upload?path=${encodeURIComponent(at('kept'))} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n` +
        'Content-Type: multipart/form-data; boundary=b\r\n\r\n' +
        '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nnew content',
    );
    await expect
      .poll(
        async () => (await post('glob', { path: scratch.path, pattern: '.upload-*' })).body.matches.length,
      )
      .toBe(1);
    socket.destroy();
    await expect
      .poll(
        async () => (await post('glob', { path: scratch.path, pattern: '.upload-*' })).body.matches.length,
      )
      .toBe(0);
    expect(await readFile(at('kept'), 'utf8')).toBe('old');
  });

  it('that become shorter while they are downloaded end the connection', async () => {
    await upload(at('shrinking'), new Uint8Array(20_000_000));
    const response = await fetch(fileUrl('download', at('shrinking')));
    await post('execute', { command: `: > ${at('shrinking')}` });
    await expect(response.arrayBuffer()).rejects.toThrow('terminated');
  });
});

describe('searches', () => {
  it('find files and lines', async () => {
    await upload(at('search', 'a.txt'), 'one\ntwo\n');
    await upload(at('search', 'b', 'c.txt'), 'two\n');
    const glob = await post('glob', { path: at('search'), pattern: '**' });
    expect(glob).toMatchObject({
      status: 200,
      body: {
        matches: [
          { path: at('search', 'a.txt'), is_dir: false, size_bytes: 8 },
          { path: at('search', 'b'), is_dir: true },
          { path: at('search', 'b', 'c.txt'), is_dir: false, size_bytes: 4 },
        ],
        truncated: false,
      },
    });
    expect(glob.body.matches[0].modified_at).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect((await post('grep', { path: at('search'), pattern: 'two', glob: '*.txt' })).body).toEqual({
      matches: [
        { path: at('search', 'a.txt'), line: 2, text: 'two' },
        { path: at('search', 'b', 'c.txt'), line: 1, text: 'two' },
      ],
      truncated: false,
    });
    expect((await post('glob', { path: at('search'), pattern: '**', limit: 1 })).body).toMatchObject({
      matches: { length: 1 },
      truncated: true,
    });
  });

  it('refuse what cannot be searched', async () => {
    expect(await post('glob', { path: '/nonexistent', pattern: '*' })).toMatchObject({ status: 404 });
    expect(await post('grep', { path: '/', pattern: 'a\nb' })).toMatchObject({ status: 422 });
    expect(await post('grep', { path: '/', pattern: '' })).toMatchObject({ status: 422 });
    expect(await post('glob', { path: '/', pattern: '*', limit: 1_000_000 })).toMatchObject({ status: 422 });
  });
});

describe('requests that are none of these', () => {
  it.each<[string, string, number, string]>([
    ['POST', '/execute/stream/start', 501, 'NotSupported'],
    ['POST', '/execute/stream/resume', 501, 'NotSupported'],
    ['GET', '/tunnel', 501, 'NotSupported'],
    ['GET', '/execute/ws', 426, 'UpgradeRequired'],
    ['GET', '/execute', 405, 'MethodNotAllowed'],
    ['GET', '/', 404, 'NotFound'],
  ])('%s %s', async (method, path, status, error) => {
    const response = await fetch(`${scene.url}${path}`, { method });
    expect([response.status, (await jsonOf(response)).detail.error]).toEqual([status, error]);
  });

  it('are not upgraded', async () => {
    const received = await rawRequest(
      'GET /tunnel HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    expect(received).toMatch(/^HTTP\/1\.1 501 /);
    expect(received).toContain('"NotSupported"');
    expect(
      await rawRequest(
        'GET /execute/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      ),
    ).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('have been none for the log', () =>
    expect(scene.log.filter((line) => line.includes('failed'))).toEqual([]));
});

async function rawRequest(text: string): Promise<string> {
  const socket = connect(scene.port, '127.0.0.1');
  socket.write(text);
  return Buffer.concat(await Array.fromAsync(socket)).toString();
}

describe('an agent that dies', () => {
  it('ends the request, and the next one has another agent', async () => {
    const before = scene.processes.length;
    expect(await post('execute', { command: 'kill -9 $PPID' })).toMatchObject({
      status: 502,
      body: { detail: { error: 'ConnectionError' } },
    });
    expect((await post('execute', { command: 'echo again' })).body.stdout).toBe('again\n');
    expect(scene.processes.length).toBe(before + 1);
  });
});
