// HTTP/2 clients as real processes: each uses HTTP/2 with a host that supports it, and HTTP/1.1 with one that does not, and
// the host gets the injected credential once, instead of the one that the client sent.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { H2Exchange } from '../support/h2-exchange.ts';
import { createH2Origin, type H2Origin } from '../support/h2-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { type LogRecord, spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { type ClientName, isInstalled, runClient, titleOf } from './client-programs.ts';
import { INJECTED, SECRET } from './interop-scene.ts';

const authority = createTestAuthority();
let origin: H2Origin;
let scratch: Scratch;
let sallyport: SpawnedSallyport;

beforeAll(async () => {
  scratch = await createScratch();
  origin = await createH2Origin({ tls: { authority, names: ['good.test', 'old.test'] }, respond });
  const headers = [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }];
  sallyport = await spawnSallyport({
    proxyConfig: { rules: [{ name: 'good', match_hosts: ['good.test', 'old.test'], headers }] },
    upstreamCaPem: authority.certificatePem,
    args: ['--secrets-file', await scratch.write('secrets.env', `TOKEN=${SECRET}\n`)],
  });
});

afterAll(async () => {
  await sallyport[Symbol.asyncDispose]();
  await origin.close();
  await scratch[Symbol.asyncDispose]();
});

/** Never echoes a field: a secret in the output of a client could only come from the proxy. */
async function respond({ request, response }: H2Exchange): Promise<void> {
  if (!(await request.ended())) return;
  const { method, path: target, body } = request;
  const reported = { method, target, body: { length: body.length, sha256: body.sha256 } };
  await response(200, [['content-type', 'application/json']], JSON.stringify(reported));
}

const proxy = (): { url: string; caFile: string } => ({
  url: `http://127.0.0.1:${sallyport.port}`,
  caFile: sallyport.caFile,
});

type Client = { readonly name: ClientName; readonly flags?: readonly string[]; readonly tags?: string[] };
type Reported = { readonly status: number; readonly text: string };

/** Status and body, as the script of each client prints them; curl has options for it. */
async function ask({ name, flags = [] }: Client, url: string, file?: string): Promise<Reported> {
  const isCurl = name === 'curl';
  const sent = file === undefined ? [] : isCurl ? ['--data-binary', `@${file}`] : [file];
  const shown = isCurl ? ['--header', 'Authorization: from-the-client', '--write-out', '\n%{http_code}'] : [];
  const { code, stdout, stderr } = await runClient(name, [...flags, ...shown, url, ...sent], proxy());
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).not.toContain(SECRET);
  if (!isCurl) return JSON.parse(stdout) as Reported;
  const end = stdout.lastIndexOf('\n');
  return { status: Number(stdout.slice(end)), text: stdout.slice(0, end) };
}

const clients: readonly Client[] = [
  { name: 'curl', flags: ['--http2'] },
  { name: 'node-http2' },
  { name: 'python-httpx-h2' },
  // Compiled at each run.
  { name: 'go-net-http', tags: ['long'] },
];

describe.each(clients.map((client) => ({ ...client, title: titleOf(client.name) })))('$title', (client) => {
  const present = isInstalled(client.name);
  const { tags = [] } = client;

  it.runIf(present)('reaches a host with a rule, over HTTP/2', { tags }, async () => {
    const before = origin.streams.length;
    const { status, text } = await ask(client, `https://good.test:${origin.port}/v1/x?y=z`);
    expect({ status, reported: JSON.parse(text) }).toMatchObject({
      status: 200,
      reported: { target: '/v1/x?y=z' },
    });
    const arrived = origin.streams.slice(before);
    expect(arrived.length).toBeGreaterThan(0);
    for (const stream of arrived) {
      expect(stream.values('authorization')).toEqual([INJECTED]);
      expect(stream.neverIndexed).toEqual(['authorization']);
    }
  });

  it.runIf(present)('uploads a body over HTTP/2', { tags }, async () => {
    const before = origin.streams.length;
    const body = Buffer.alloc(3_000_000, 'abcdefg');
    const file = await scratch.write(`body-${client.name}`, body.toString());
    const { text } = await ask(client, `https://good.test:${origin.port}/up`, file);
    const sha256 = createHash('sha256').update(body).digest('hex');
    expect(JSON.parse(text)).toMatchObject({ method: 'POST', body: { length: body.length, sha256 } });
    expect(origin.streams.length).toBeGreaterThan(before);
  });
});

describe.runIf(isInstalled('node-fetch'))('fetch of Node', () => {
  it('reaches a host that supports both, with the protocol that it offers', async () => {
    const before = origin.streams.length + origin.http1.requests.length;
    const { status } = await ask({ name: 'node-fetch' }, `https://good.test:${origin.port}/fetch`);
    expect(status).toBe(200);
    expect(origin.streams.length + origin.http1.requests.length).toBe(before + 1);
  });
});

describe.runIf(isInstalled('curl'))(titleOf('curl'), () => {
  it.each([
    ['--http2', ['h2', 'http/1.1'], '2'],
    ['--http2', ['http/1.1'], '1.1'],
    ['--http1.1', ['h2', 'http/1.1'], '1.1'],
  ] as const)('with %s and a host of %j speaks HTTP/%s', async (flag, protocols, version) => {
    await using other = await createH2Origin({ tls: { authority, names: ['old.test'] }, protocols });
    const url = `https://old.test:${other.port}/`;
    const args = [flag, '--output', '/dev/null', '--write-out', '%{http_version} %{http_code}', url];
    expect((await runClient('curl', args, proxy())).stdout).toBe(`${version} 200`);
    const seen =
      version === '2'
        ? other.streams.map((stream) => stream.values('authorization'))
        : other.http1.requests.map(({ headers }) =>
            headers.filter(([name]) => name.toLowerCase() === 'authorization').map(([, value]) => value),
          );
    expect(seen).toEqual([[INJECTED]]);
  });

  it('receives ten concurrent responses on one connection', async () => {
    const urls = Array.from({ length: 10 }, (_, n) => `https://good.test:${origin.port}/at-once/${n}`);
    const before = origin.streams.length;
    const flags = ['--http2', '--parallel', '--output', '/dev/null'];
    const args = urls.flatMap((url, n) => (n === 0 ? [url] : ['--output', '/dev/null', url]));
    const { code } = await runClient('curl', [...flags, ...args], proxy());
    expect(code).toBe(0);
    const paths = origin.streams.slice(before).map(({ path }) => path);
    expect(paths.sort()).toEqual(urls.map((url) => new URL(url).pathname).sort());
  });

  it('that sends HTTP/2 in plaintext with prior knowledge gets an error response', async () => {
    const args = [
      '--http2-prior-knowledge',
      '--verbose',
      '--max-time',
      '20',
      `http://127.0.0.1:${sallyport.port}/`,
    ];
    const { code, stdout } = await runClient('curl', ['--noproxy', '*', ...args], proxy());
    expect(code).not.toBe(0);
    expect(stdout).toBe('');
    const isRefused = (record: LogRecord): boolean => record['reason'] === 'version_refused';
    expect(await sallyport.process.record(isRefused)).toMatchObject({ outcome: 'refused', status: 505 });
    // The process still serves requests.
    const { status } = await ask({ name: 'curl', flags: ['--http2'] }, `https://good.test:${origin.port}/`);
    expect(status).toBe(200);
  });
});
