// A canary for each way to provide a secret: it reaches the origin, and is in nothing that the agent, a reader of the logs
// or another process of the user can see.
import { closeSync, openSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createOrigin, type Exchange, response } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';

const CANARY = 'canary-7f3a_of+the/secrets=9d';
const origins = createTestAuthority();

type Given = {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly descriptors?: readonly number[];
};

const sources: readonly (readonly [string, (scratch: Scratch) => Promise<Given>])[] = [
  ['a directory of files', fromDirectory],
  ['a file of lines', async (scratch) => ({ args: ['--secrets-file', await writeLines(scratch)] })],
  ['a variable that names a file', fromNamedFile],
  ['a file descriptor', fromDescriptor],
  ['a variable, for a try-out', async () => ({ env: { SALLYPORT_SECRET_TOKEN: CANARY } })],
];

describe.each(sources)('a secret from %s', (_, give) => {
  it('reaches only the origin', async () => {
    await using scratch = await createScratch();
    await using origin = await createOrigin({
      tls: { authority: origins, names: ['api.test'] },
      respond: echoInHead,
    });
    const given = await give(scratch);
    await using proxy = await spawnSallyport({
      upstreamCaPem: origins.certificatePem,
      proxyConfig,
      ...given,
    });
    for (const fd of given.descriptors ?? []) closeSync(fd);

    const seen = await ask(proxy, origin.port);
    expect(origin.requests[0]?.headers).toContainEqual(['Authorization', `Bearer ${CANARY}`]);
    expect(seen).toMatch(/^HTTP\/1\.1 200 .*X-Echo: \*+\r\n/s);
    // An error response is text of the proxy: it must not quote the rule.
    await origin.close();
    const refused = await ask(proxy, origin.port);
    expect(refused).toContain('upstream_unreachable');

    for (const [place, text] of [
      ['the response', seen],
      ['the rejection', refused],
      ...(await visibleOf(proxy)),
    ])
      expect({ place, found: formsIn(text ?? '') }).toEqual({ place, found: [] });
  });
});

const proxyConfig = {
  rules: [
    {
      name: 'api',
      match_hosts: ['api.test'],
      headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
    },
  ],
};

async function fromDirectory(scratch: Scratch): Promise<Given> {
  const directory = join(scratch.path, 'secrets');
  await mkdir(directory);
  await writeFile(join(directory, 'TOKEN'), `${CANARY}\n`);
  return { args: ['--secrets-dir', directory] };
}

async function fromNamedFile(scratch: Scratch): Promise<Given> {
  return { env: { SALLYPORT_SECRET_TOKEN_FILE: await scratch.write('token', CANARY) } };
}

async function fromDescriptor(scratch: Scratch): Promise<Given> {
  const fd = openSync(await writeLines(scratch), 'r');
  return { args: ['--secrets-fd', '3'], descriptors: [fd] };
}

function writeLines(scratch: Scratch): Promise<string> {
  return scratch.write('secrets.env', `TOKEN=${CANARY}\n`);
}

/** Everything that the agent sees of one request. */
async function ask(proxy: SpawnedSallyport, port: number): Promise<string> {
  const ca = await readFile(proxy.caFile, 'utf8');
  await using client = await WireClient.connectThrough(proxy.port, `api.test:${port}`, {
    ca,
    name: 'api.test',
  });
  await client.send(`GET / HTTP/1.1\r\nHost: api.test:${port}\r\nConnection: close\r\n\r\n`);
  return await client.readToEnd();
}

/** Sends the credential back, as a careless host may, in its head and in other encodings. */
async function echoInHead({ request, send }: Exchange): Promise<void> {
  const value = request.headers.find(([name]) => name === 'Authorization')?.[1] ?? '';
  const spellings = [value, Buffer.from(value).toString('base64'), encodeURIComponent(value)];
  await send(
    response(
      200,
      spellings.map((text) => ['X-Echo', text] as const),
    ),
  );
}

/** What another process of the same user, and a reader of the output, can see of the proxy. Ends the proxy. */
async function visibleOf({
  process: child,
  caFile,
}: SpawnedSallyport): Promise<(readonly [string, string])[]> {
  const ofProcess = ['environ', 'cmdline'].map(
    async (name) => [name, await readFile(`/proc/${child.pid}/${name}`, 'latin1')] as const,
  );
  const seen = await Promise.all(ofProcess);
  // The proxy publishes its CA bundle after it is ready, under another name at first: only its end makes the files final.
  child.kill('SIGTERM');
  expect(await child.exited).toEqual({ code: 0, signal: null });
  const published = join(caFile, '..');
  const files = (await readdir(published)).map(
    async (name) => [name, await readFile(join(published, name), 'latin1')] as const,
  );
  return [['stdout', child.stdout], ['stderr', child.stderr], ...seen, ...(await Promise.all(files))];
}

function formsIn(text: string): readonly string[] {
  const bytes = Buffer.from(CANARY);
  const forms = {
    raw: CANARY,
    base64: bytes.toString('base64').replace(/=+$/, '').slice(0, -2),
    base64url: bytes.toString('base64url').slice(0, -2),
    hex: bytes.toString('hex'),
    percent: encodeURIComponent(CANARY),
    half: CANARY.slice(0, 14),
  };
  return Object.entries(forms).flatMap(([name, form]) => (text.includes(form) ? [name] : []));
}
