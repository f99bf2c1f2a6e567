// Two hundred sandboxes of one real process, created via the admin API: half of them identified by a token on the main
// listener, half by a listener of their own. All have the same hosts and differ only in their secrets.
import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type AdminReply, type AskAdmin, createAdminClient } from '../support/admin-client.ts';
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { headerValues } from '../support/message-reader.ts';
import {
  type OriginRequest,
  type RecordingOrigin,
  createOrigin,
  jsonResponse,
  response,
} from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { type SpawnedSallyport, spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';

export type Member = {
  readonly id: string;
  readonly secret: string;
  /** Undefined: every client of its listener belongs to it. */
  token: string | undefined;
  readonly port: number;
  readonly hasOwnListener: boolean;
};

export type Fleet = AsyncDisposable & {
  readonly proxy: SpawnedSallyport;
  readonly members: readonly Member[];
  readonly admin: AskAdmin;
  /** TLS, for `api.test` and `called.test`; responds with its signature and the injected fields. */
  readonly origin: RecordingOrigin;
  /** Plaintext. */
  readonly plain: RecordingOrigin;
  readonly endpoint: CallbackEndpoint;
  /** Memory of the process before the first sandbox was created. */
  readonly emptyBytes: number;
  /** A client of the member inside its tunnel to the host. */
  tunnel(member: Member, host: Host): Promise<WireClient>;
};

export type Host = 'api.test' | 'called.test';

const AT_ONCE = 4;
const RETRY_MS = 100;

export async function createFleet(size: number): Promise<Fleet> {
  const authority = createTestAuthority();
  const scratch = await createScratch();
  const tls = { authority, names: ['api.test', 'called.test'] };
  const origin = await createOrigin({
    tls,
    async respond({ request, readBody, send }) {
      await readBody();
      await send(response(200, [], `${signatureOf(request)}\n${injectedIn(request)}`));
    },
  });
  const plain = await createOrigin();
  const endpoint = await createCountingEndpoint();
  const proxy = await spawnSallyport({
    proxyConfig: {},
    upstreamCaPem: authority.certificatePem,
    env: { SALLYPORT_AUTH_TOKEN_FILE: await scratch.write('proxy-token', 'the-token-of-default-0123456789') },
  });
  const ready = await proxy.process.record(({ msg }) => msg === 'ready');
  const ca = await readFile(proxy.caFile, 'utf8');
  const adminToken = (await readFile(String(ready['admin_token']), 'utf8')).trim();
  const admin = createAdminClient(String(ready['admin']), adminToken);
  // Loaded with the first write; not part of any sandbox.
  await admin('PUT', '/v1/workspace_secrets', { WARM: 'up' });
  const emptyBytes = proxy.process.usage().residentBytes;
  const numbers = Array.from({ length: size }, (_, i) => i).values();
  const members: Member[] = [];
  const make = async (): Promise<void> => {
    for (const i of numbers) members[i] = await createMember({ admin, endpoint, proxy }, i);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, make));
  return {
    ...{ proxy, members, admin, origin, plain, endpoint, emptyBytes },
    async tunnel(member, host) {
      const client = await WireClient.connect(member.port);
      const opened = await client.openTunnel(`${host}:${origin.port}`, tokenFields(member));
      if (opened.status !== 200) throw new Error(`${member.id} got ${opened.status}`);
      await client.startTls({ ca, name: host });
      return client;
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      for (const one of [origin, plain, endpoint, scratch]) await one[Symbol.asyncDispose]();
    },
  };
}

/** The credential with which a client of the member authenticates to the proxy. */
export function tokenFields({ token }: Pick<Member, 'token'>): readonly string[] {
  return token === undefined ? [] : [`Proxy-Authorization: Bearer ${token}`];
}

/** Even ones use a token on the main listener; of those with their own listener, every other one has a token too. */
async function createMember(
  { admin, endpoint, proxy }: Pick<Fleet, 'admin' | 'endpoint' | 'proxy'>,
  i: number,
): Promise<Member> {
  const id = `box-${i}`;
  const secret = `sesame-of-${id}`;
  const hasOwnListener = i % 2 === 1;
  const { status, body, text } = await createWithin(admin, {
    id,
    ...(hasOwnListener ? { listen: '127.0.0.1:0' } : {}),
    ...(hasOwnListener && i % 4 === 1 ? {} : { token: 'generate' }),
    workspace_secrets: { KEY: secret },
    proxy_config: documentOf(i, endpoint.url),
  });
  if (status !== 201) throw new Error(`${id} got ${status}: ${text}`);
  const { token, proxy: url } = body as { token?: string; proxy: string };
  const port = Number(new URL(url).port);
  if (hasOwnListener === (port === proxy.port)) throw new Error(`${id} has the wrong listener`);
  return { id, secret, token, port, hasOwnListener };
}

/** The admin API limits writes per second, and says when to retry. */
async function createWithin(admin: AskAdmin, document: object): Promise<AdminReply> {
  for (;;) {
    const reply = await admin('POST', '/v1/sandboxes', document);
    if (reply.status !== 429) return reply;
    await delay(RETRY_MS);
  }
}

/** Two of three callbacks name their sandbox; the others are identical, to show that responses are not shared. */
function documentOf(i: number, url: string): unknown {
  const authorization = { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {KEY}' };
  const who = { name: 'X-Box', type: 'opaque', value: `box-${i}` };
  const callback = { name: 'callback', match_hosts: ['called.test'], url, ttl_seconds: 60 };
  return {
    rules: [{ name: 'rule', match_hosts: ['api.test'], headers: [authorization, who] }],
    callbacks: [{ ...callback, request_headers: i % 3 === 0 ? [] : [who] }],
  };
}

/** Responds to each call with a unique number and with the name in its request. */
async function createCountingEndpoint(): Promise<CallbackEndpoint> {
  const endpoint: CallbackEndpoint = await createCallbackEndpoint(async ({ request, send }) => {
    const [box = 'nobody'] = headerValues(request, 'x-box');
    const headers = { Authorization: `Bearer call-${endpoint.calls.length}`, 'X-Box': box };
    await send(jsonResponse({ headers }));
  });
  return endpoint;
}

export function sign(nonce: string, target: string): string {
  return createHmac('sha256', 'the origin').update(`${target} ${nonce}`).digest('hex');
}

function signatureOf(request: OriginRequest): string {
  return sign(headerValues(request, 'x-nonce')[0] ?? '', request.target);
}

function injectedIn({ headers }: OriginRequest): string {
  const injected = headers.filter(([name]) => /^(?:authorization|x-box)$/i.test(name));
  return injected.map((field) => field.join(': ')).join('\n');
}
