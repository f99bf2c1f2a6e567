// Plays bytes against the real command with a secret of every kind in it, logging all that it can, and searches what came
// out since: the responses, the raw lines of its log, its files. A line must be one line to every viewer.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { vi } from 'vitest';
import { findLeaks } from '../../e2e/canary-search.ts';
import { textCanary } from '../../e2e/canary-values.ts';
import { createAdminClient } from '../../support/admin-client.ts';
import { createOrigin, response } from '../../support/recording-origin.ts';
import { createScratch } from '../../support/scratch.ts';
import { type SpawnedSallyport, spawnSallyport } from '../../support/spawned-process.ts';
import { createTestAuthority } from '../../support/test-authority.ts';
import { WireClient } from '../../support/wire-client.ts';
import { type TrafficExpectation, type TrafficScript, toText } from './leak-script.ts';

export const values = {
  opaque: 'canary-opaque-8d3f0a6b"\\%c19e7254',
  secret: 'canary-secret-51f6c2d8~>>?a7b40e93',
  token: 'canary-token-c4ca4238a0b923820dcc509a6f75849b',
} as const;
/** A client's own: no sink of ours may hold it, but for the path of a request, which is a record's to tell. */
const MARK = 'canary-mark-eccbc87e4b5ce2fe28308fd9f2a7baf3';

export type TrafficScene = AsyncDisposable & {
  readonly sallyport: SpawnedSallyport;
  play(script: TrafficScript, expected: TrafficExpectation): Promise<readonly string[]>;
};

const origins = createTestAuthority('Origins of leaks');
const hosts = ['api.test', 'other.test'];

export async function createTrafficScene(): Promise<TrafficScene> {
  const origin = await createOrigin({
    tls: { authority: origins, names: hosts },
    respond: ({ send }) => send(response(200, [])),
  });
  const clear = await createOrigin({ respond: ({ send }) => send(response(200, [])) });
  await using made = new AsyncDisposableStack();
  const state = made.use(await createScratch());
  const document = {
    rules: [
      {
        name: 'leaky',
        match_hosts: ['api.test'],
        headers: [
          { name: 'Authorization', type: 'opaque', value: values.opaque },
          { name: 'X-Key', type: 'workspace_secret', value: 'v {VALUE}' },
        ],
      },
    ],
  };
  const sallyport = made.use(
    await spawnSallyport({
      proxyConfig: document,
      upstreamCaPem: origins.certificatePem,
      env: {
        SALLYPORT_LOG_LEVEL: 'trace',
        SALLYPORT_SECRET_VALUE: values.secret,
        SALLYPORT_ADMIN_TOKEN: values.token,
        SALLYPORT_STATE_DIR: state.path,
      },
    }),
  );
  const ready = await sallyport.process.record(({ msg }) => msg === 'ready');
  const admin = createAdminClient(String(ready['admin']), values.token);
  const ports = { proxy: sallyport.port, admin: Number(new URL(String(ready['admin'])).port) };
  const caPem = await readFile(sallyport.caFile, 'utf8');
  const filled = (text: string): Buffer =>
    Buffer.from(
      text
        .replaceAll('<OPAQUE>', values.opaque)
        .replaceAll('<SECRET>', values.secret)
        .replaceAll('<TOKEN>', values.token)
        .replaceAll('<MARK>', MARK)
        .replaceAll('<API>', `api.test:${origin.port}`)
        .replaceAll('<CLEAR>', `127.0.0.1:${clear.port}`),
      'latin1',
    );

  async function send(script: TrafficScript, text: string): Promise<{ status: number; transcript: string }> {
    const entry = script.entry === 'admin' ? ports.admin : ports.proxy;
    await using client = await WireClient.connect(entry);
    if (script.entry === 'tunnel') {
      const authority = `api.test:${origin.port}`;
      await client.openTunnel(authority);
      await client.startTls({ ca: caPem, name: 'api.test' });
    }
    client.send(filled(text)).catch(() => undefined);
    let head = await client.readHead();
    while (head.status < 200) head = await client.readHead();
    // Of CONNECT the 200 is all; else a body that is whole, or the end.
    if (!text.startsWith('CONNECT') || head.status !== 200) await client.readBody();
    return { status: head.status, transcript: client.transcript };
  }

  const stack = made.move();
  return {
    sallyport,
    async play(script, expected) {
      const seen = sallyport.process.stdout.length;
      const seenErrors = sallyport.process.stderr.length;
      const responses = [];
      for (const bytes of script.send) responses.push(await send(script, toText(bytes)));
      // A line of our own behind all others: what was logged before it has arrived.
      await admin('PUT', '/v1/proxy_config', document);
      await vi.waitUntil(
        () =>
          /"action":"proxy_config.apply".*"status":200.*\n[^]*$/.test(sallyport.process.stdout.slice(seen)),
        {
          interval: 2,
          timeout: 10_000,
        },
      );
      const logged = sallyport.process.stdout.slice(seen) + sallyport.process.stderr.slice(seenErrors);
      const text = responses.map(({ transcript }) => transcript).join('\n');
      return [
        ...differences(
          expected,
          responses.map(({ status }) => status),
          logged,
          text,
        ),
        ...oddLines(logged),
        ...leaks(text, logged),
      ];
    },
    async [Symbol.asyncDispose]() {
      await stack.disposeAsync();
      await clear.close();
      await origin.close();
    },
  };
}

function differences(
  { statuses, record, holds }: TrafficExpectation,
  got: readonly number[],
  logged: string,
  responded: string,
): readonly string[] {
  const found: string[] = [];
  if (JSON.stringify(got) !== JSON.stringify(statuses))
    found.push(`statuses ${got.join()} instead of ${statuses.join()}`);
  if (holds !== undefined && !responded.includes(holds)) found.push(`no ${holds} in ${responded}`);
  const exchanges = logged
    .split('\n')
    .filter((line) => line.includes('"msg":"exchange"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const [name, value] of Object.entries(record ?? {})) {
    const was = exchanges.at(-1)?.[name];
    if (JSON.stringify(was) !== JSON.stringify(value))
      found.push(`record: ${name} is ${JSON.stringify(was)}`);
  }
  return found;
}

const MAX_LINE = 4_096;
/** What ends a line, steers a terminal or turns its text. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

function oddLines(logged: string): readonly string[] {
  return logged.split('\n').flatMap((line) => {
    if (line === '') return [];
    if (line.length > MAX_LINE) return [`a line of ${line.length}`];
    if (STEERING.test(line)) return [`a line that steers: ${JSON.stringify(line)}`];
    return /^\{.*\}$/.test(line) && isJson(line) ? [] : [`a line that is no record: ${line.slice(0, 80)}`];
  });
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

function leaks(responses: string, logged: string): readonly string[] {
  const ours = Object.entries(values).map(([name, value]) => textCanary(name, value));
  const all = [...ours, textCanary('mark', MARK)];
  return [
    ...findLeaks('responses', Buffer.from(responses, 'latin1'), all),
    ...findLeaks('log', Buffer.from(logged), all),
  ];
}

/** Every file below a directory that holds one of the values. */
export async function filesWithValues(directory: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const bytes = await readFile(join(entry.parentPath, entry.name));
    found.push(
      ...findLeaks(
        entry.name,
        bytes,
        Object.entries(values).map(([name, value]) => textCanary(name, value)),
      ),
    );
  }
  return found;
}
