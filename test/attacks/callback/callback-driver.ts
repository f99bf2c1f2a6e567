// Plays a row of stage `callback`: applies the document, sends the requests, and handles the calls of the endpoint as the
// row's script specifies. Returns everything that was observed; `violations` compares it.
import type { Applied } from '../../../src/sidecar/sandboxes/sandbox-rules.ts';
import { SECRET, publicAuthority, tracesOf } from '../../invariants/credential-scene.ts';
import type { DialLedger } from '../../invariants/dial-ledger.ts';
import { headerValues } from '../../support/message-reader.ts';
import { type Exchange, createOrigin, response } from '../../support/recording-origin.ts';
import type { LogRecord } from '../../support/spawned-process.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { CallbackCalls } from './callback-calls.ts';
import { CallbackPlayer } from './callback-player.ts';
import type { CallbackPlay, CallbackRow, CallbackScript, Document } from './callback-script.ts';

export const SHARED = 'shared-secret-5d2e';

export type CallbackScene = AsyncDisposable & {
  readonly proxy: TestSidecar;
  play(row: CallbackRow): Promise<CallbackObservation>;
};

export type CallbackObservation = {
  readonly applied: Applied;
  readonly outcomes: readonly string[];
  /** Heads of the calls, and their bodies. */
  readonly calls: readonly string[];
  readonly callBodies: readonly string[];
  /** Heads at the origin. */
  readonly heads: readonly string[];
  readonly records: readonly LogRecord[];
  readonly elsewhere: number;
  /** Connection attempts outside loopback. */
  readonly outsideLoopback: readonly string[];
  readonly traces: readonly string[];
};

const TWICE: readonly CallbackPlay[] = ['ask_on_the_same_tunnel', 'ask_on_the_same_tunnel'];

const configs: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  strict: { callback: { allow_private: false } },
  impatient: { callback: { timeout_ms: 400 } },
};

export async function createCallbackScene(
  ledger: DialLedger,
  kind: CallbackScript['config'],
): Promise<CallbackScene> {
  const calls = new CallbackCalls();
  const sprayed = Array.from({ length: 80 }, (_, i) => `h${i}.api.test`);
  const tls = { authority: publicAuthority, names: ['api.test', 'rule.test', ...sprayed] };
  const origin = await createOrigin({ tls, respond: echoInHead });
  const plain = await createOrigin({ respond: calls.respond });
  const secure = await createOrigin({
    tls: { authority: publicAuthority, names: ['cb.test'] },
    respond: calls.respond,
  });
  const elsewhere = await createOrigin();
  const clock = { ms: 0 };
  let rebound = 0;
  const proxy = await createTestSidecar({
    origins: publicAuthority,
    now: () => clock.ms,
    admin: true,
    config: { timeouts: { drain_ms: 500 }, ...configs[kind ?? ''] },
    names: {
      'meta.test': ['169.254.169.254'],
      'mixed.test': ['127.0.0.1', '169.254.169.254'],
      'mapped.test': ['::ffff:169.254.169.254'],
      'zero.test': ['0.0.0.0'],
      'linked.test': ['fe80::1'],
      'void.test': [],
      'lost.test': new Error(`no such name, 10.1.2.3 reports about ${SECRET}`),
      get 'rebind.test'() {
        rebound += 1;
        return [rebound % 2 === 1 ? '127.0.0.1' : '169.254.169.254'];
      },
    },
  });
  const ports = {
    CALLBACK: plain.port,
    SECURE: secure.port,
    ELSEWHERE: elsewhere.port,
    PROXY: proxy.port,
    ADMIN: Number(new URL(proxy.adminUrl).port),
    ORIGIN: origin.port,
  };
  const peers = { proxy, origin, calls, clock };
  return {
    proxy,
    async play({ script }) {
      calls.begin(script.responses ?? [], (text) => filled(text, ports));
      rebound = 0;
      const seen = {
        records: proxy.records().length,
        lines: proxy.lines.length,
        heads: origin.requests.length,
      };
      const others = { dials: ledger.attempts.length, elsewhere: elsewhere.connections };
      const apply = (document: Document): Applied =>
        proxy.apply(filled({ ...document, callbacks: document.callbacks?.map(entryOf(script)) }, ports));
      await using player = new CallbackPlayer({ ...peers, apply });
      const applied = apply({ callbacks: [{}] });
      const outcomes = applied.ok ? await player.play(filled(script.play ?? TWICE, ports)) : [];
      if (applied.ok) await proxy.record(seen.records + outcomes.length - 1);
      return {
        applied,
        outcomes,
        calls: calls.heads,
        callBodies: calls.bodies.map((body) => body.replace(String(origin.port), '{ORIGIN}')),
        heads: origin.requests.slice(seen.heads).map(({ head }) => head),
        records: proxy.records().slice(seen.records),
        elsewhere: elsewhere.connections - others.elsewhere,
        outsideLoopback: ledger.attempts.slice(others.dials).filter((to) => !to.startsWith('127.0.0.1:')),
        traces: [SECRET, SHARED].flatMap((secret) =>
          tracesOf(secret, [
            ...player.transcripts,
            ...proxy.lines.slice(seen.lines).map((line) => JSON.stringify(line)),
          ]),
        ),
      };
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      for (const peer of [origin, plain, secure, elsewhere]) await peer.close();
    },
  };
}

/** Echoes the injected value in the head of each response: the client must not read it there. */
function echoInHead({ request, send }: Exchange): Promise<void> {
  const [value = ''] = headerValues(request, 'authorization');
  return send(response(200, [['X-Echo', value]], 'served'));
}

/** The callback entry of the row, with the members that the document sets. */
function entryOf(script: CallbackScript): (own: object) => Record<string, unknown> {
  return (own) => ({
    match_hosts: ['api.test', '*.api.test'],
    url: 'http://127.0.0.1:{CALLBACK}/credentials',
    ttl_seconds: 60,
    request_headers: [{ name: 'X-Shared', type: 'opaque', value: SHARED }],
    ...script.entry,
    ...own,
  });
}

function filled<T>(value: T, ports: Readonly<Record<string, number>>): T {
  let text = JSON.stringify(value);
  for (const [name, port] of Object.entries(ports)) text = text.replaceAll(`{${name}}`, String(port));
  return JSON.parse(text);
}
