// Plays a row of the stage `document` against one sidecar with a rule in force: validates the file as `check` does, then
// sends the PUT, then reads what is in force and what a request gets. Restores what a row changed.
import { vi } from 'vitest';
import { capIssues } from '../../../src/base/schema.ts';
import { readDocument } from '../../../src/cli/document.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import { type RecordingOrigin, createOrigin } from '../../support/recording-origin.ts';
import { type Scratch, createScratch } from '../../support/scratch.ts';
import { createTestAuthority } from '../../support/test-authority.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import type { DocumentScript, Expectation } from './document-script.ts';

export type Observation = {
  /** Undefined if there is no file of its kind. */
  readonly check: readonly string[] | undefined;
  readonly status: number;
  readonly issues: readonly string[];
  readonly warnings: readonly string[];
  readonly arrived: readonly (readonly string[])[];
  /** Whether revision, ETag and document are unchanged. */
  readonly isUnchanged: boolean;
  /** The fields that the rule in force injects into a later request. */
  readonly inForce: readonly string[];
  /** Status and reason in the single record of the write. */
  readonly record: string;
  /** All output about the document: responses, records, the messages of `check`. */
  readonly output: string;
};

export type DocumentScene = AsyncDisposable & {
  readonly proxy: TestSidecar;
  readonly origin: RecordingOrigin;
  play(script: DocumentScript): Promise<Observation>;
};

const names = ['base.test', 'api.test', 'other.test', 'good.test', 'a.good.test', 'b.a.good.test'];
const origins = createTestAuthority('Origins of documents');
const baseHeaders = [{ name: 'X-Base', type: 'plaintext', value: 'in-force' }];
const base = { rules: [{ name: 'base', match_hosts: ['base.test'], headers: baseHeaders }] };

/** The secrets that templates may name: a valid one, and some that are not a valid header value. */
export const secrets: Readonly<Record<string, string>> = {
  GOOD: 'canary-good-value',
  good: 'canary-in-small-letters',
  BRACES: '{GOOD}',
  CRLF: 'canary\r\nX-Evil: 1',
  NEWLINE: 'canary-of-a-file\n',
  NUL: 'canary\u0000',
  LATIN: 'canary-\u00e9',
  LONG: 'c'.repeat(9_000),
  constructor: 'canary-constructor',
};

export async function createDocumentScene(): Promise<DocumentScene> {
  const scratch = await createScratch();
  const origin = await createOrigin({ tls: { authority: origins, names } });
  const proxy = await createTestSidecar({ origins, admin: true });
  await proxy.admin('PUT', '/v1/workspace_secrets', secrets);
  await proxy.admin('PUT', '/v1/proxy_config', base);
  let written = 0;
  const standing = new StandingTunnel(proxy, origin);
  return {
    proxy,
    origin,
    async play(script) {
      // The admin API accepts a document of the largest size every four seconds; rows are faster.
      written += 1;
      using _clock = clockAhead(written * 4_000);
      return await play(script, { proxy, origin, scratch, standing });
    },
    async [Symbol.asyncDispose]() {
      await standing[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
      await origin.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

type Parts = {
  readonly proxy: TestSidecar;
  readonly origin: RecordingOrigin;
  readonly scratch: Scratch;
  readonly standing: StandingTunnel;
};

/** A client with one connection for all rows: the rules in force at the time of its request decide. */
class StandingTunnel {
  readonly #proxy: TestSidecar;
  readonly #origin: RecordingOrigin;
  #client: WireClient | undefined;

  constructor(proxy: TestSidecar, origin: RecordingOrigin) {
    this.#proxy = proxy;
    this.#origin = origin;
  }

  async ask(): Promise<readonly string[]> {
    const { port, caPem } = this.#proxy;
    const authority = `base.test:${this.#origin.port}`;
    this.#client ??= await WireClient.connectThrough(port, authority, { ca: caPem, name: 'base.test' });
    return send(this.#client, this.#origin, authority, '/');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client?.[Symbol.asyncDispose]();
  }
}

async function play(
  script: DocumentScript,
  { proxy, origin, scratch, standing }: Parts,
): Promise<Observation> {
  const text = script.text
    .map((part) => (typeof part === 'string' ? part : part[0].repeat(part[1])))
    .join('');
  const { route = 'proxy_config' } = script;
  const before = await proxy.admin('GET', '/v1/proxy_config');
  const firstLine = proxy.lines.length;
  const check =
    route === 'proxy_config' ? await checkFile(await scratch.write('document.json', text)) : undefined;
  const reply = await proxy.admin(route === 'sandboxes' ? 'POST' : 'PUT', `/v1/${route}`, text);
  const arrived: (readonly string[])[] = [];
  for (const [host, path] of script.ask ?? []) arrived.push(await ask(proxy, origin, host, path));
  const lines = proxy.lines.slice(firstLine);
  const writes = lines.filter(({ msg }) => msg === 'admin');
  if (reply.status < 300 && route === 'proxy_config') await proxy.admin('PUT', '/v1/proxy_config', base);
  const after = await proxy.admin('GET', '/v1/proxy_config');
  return {
    check: check?.issues,
    status: reply.status,
    issues: issuesOf(reply.body['detail']),
    warnings: issuesOf(reply.body['warnings']),
    arrived,
    isUnchanged: before.text === after.text && before.etag === after.etag,
    inForce: await standing.ask(),
    record: writes.map(({ status, reason }) => `${status} ${reason ?? 'none'}`).join(', '),
    output: [reply.text, JSON.stringify(lines), check?.output ?? ''].join('\n'),
  };
}

/** Validates the file as `check` does. */
async function checkFile(
  file: string,
): Promise<{ readonly issues: readonly string[]; readonly output: string }> {
  let document: unknown;
  try {
    document = await readDocument(file);
  } catch (error) {
    return { issues: ['json_invalid'], output: String(error) };
  }
  const parsed = parseProxyConfig(document);
  const issues = parsed.ok ? [] : capIssues(parsed.issues);
  return { issues: issues.map(({ loc, type }) => placed(loc, type)), output: JSON.stringify(issues) };
}

function issuesOf(issues: unknown): readonly string[] {
  if (!Array.isArray(issues)) return [];
  return issues.map(({ loc, type }: { loc: readonly unknown[]; type: string }) => placed(loc.slice(1), type));
}

function placed(loc: readonly unknown[], type: string): string {
  return [loc.join('.'), type].filter((part) => part !== '').join(' ');
}

/** The injected fields that arrived with one request; `refused` if no request arrived. */
async function ask(
  proxy: TestSidecar,
  origin: RecordingOrigin,
  host: string,
  path: string,
): Promise<readonly string[]> {
  const authority = `${host}:${origin.port}`;
  await using client = await WireClient.connect(proxy.port);
  if ((await client.openTunnel(authority)).status !== 200) return ['refused'];
  // A blind tunnel presents the origin's own certificate.
  await client.startTls({ ca: `${proxy.caPem}\n${origins.certificatePem}`, name: host });
  return await send(client, origin, authority, path);
}

async function send(
  client: WireClient,
  origin: RecordingOrigin,
  authority: string,
  path: string,
): Promise<readonly string[]> {
  const count = origin.requests.length;
  await client.send(`GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nX-Agent: 1\r\n\r\n`);
  await client.readResponse();
  const [request, ...more] = origin.requests.slice(count);
  if (!request || more.length > 0) return ['refused'];
  return request.headers
    .filter(([name]) => !['host', 'x-agent'].includes(name.toLowerCase()))
    .map(([name, value]) => `${name}: ${value}`);
}

function clockAhead(ms: number): Disposable {
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
  return { [Symbol.dispose]: () => spy.mockRestore() };
}

export function violations(
  expected: Expectation,
  seen: Observation,
  script: DocumentScript,
): readonly string[] {
  const found: string[] = [];
  const same = (what: string, got: unknown, wanted: unknown): void => {
    if (JSON.stringify(got) !== JSON.stringify(wanted))
      found.push(`${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`);
  };
  const { issues = [], atPut = issues } = expected;
  const isTaken = atPut.length === 0;
  if (script.route === undefined) same('check', seen.check, issues);
  if (isTaken) same('status', seen.status, script.route === 'sandboxes' ? 201 : 200);
  else same('PUT', [seen.status, seen.issues], [422, atPut]);
  same('warnings', seen.warnings, expected.warnings ?? []);
  same('record', seen.record, isTaken ? `${seen.status} none` : '422 invalid');
  same('arrived', seen.arrived, expected.arrived ?? []);
  same('rule in force', seen.inForce, ['X-Base: in-force']);
  if (!isTaken && !seen.isUnchanged) found.push('a rejected document changed something');
  if (/canary/i.test(seen.output)) found.push('the output about the document contains a value');
  return found;
}
