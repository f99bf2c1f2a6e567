// The client's side of a row: sends the requests of the play and returns the outcome of each, from what the client read and
// what the origin received.
import { WireClient } from '../../support/wire-client.ts';
import { headerValues } from '../../support/message-reader.ts';
import type { Applied } from '../../../src/sidecar/sandboxes/sandbox-rules.ts';
import type { RecordingOrigin } from '../../support/recording-origin.ts';
import type { TestSidecar } from '../../support/test-sidecar.ts';
import type { CallbackCalls } from './callback-calls.ts';
import type { CallbackPlay, Document } from './callback-script.ts';

export type CallbackPeers = {
  readonly proxy: TestSidecar;
  readonly origin: RecordingOrigin;
  readonly calls: CallbackCalls;
  /** The clock of the callback cache. */
  readonly clock: { ms: number };
  apply(document: Document): Applied;
};

/** Which of many concurrent calls serves which request is random: for those the outcome only says that one did. */
type SentRequest = {
  readonly target: string;
  readonly response: Promise<string>;
  readonly isSprayed: boolean;
};

type Form = { readonly form: string; readonly fields: readonly string[]; readonly isSprayed: boolean };

export class CallbackPlayer {
  readonly #peers: CallbackPeers;
  readonly #requests: SentRequest[] = [];
  readonly #clients: WireClient[] = [];
  #openTunnel: WireClient | undefined;

  constructor(peers: CallbackPeers) {
    this.#peers = peers;
  }

  get transcripts(): readonly string[] {
    return this.#clients.map((client) => client.transcript);
  }

  async play(steps: readonly CallbackPlay[]): Promise<readonly string[]> {
    const { origin } = this.#peers;
    const before = origin.requests.length;
    for (const step of steps) await this.#take(step);
    await Promise.all(this.#requests.map(({ response }) => response));
    const outcomes: string[] = [];
    for (const { target, response, isSprayed } of this.#requests) {
      const read = await response;
      const head = origin.requests.slice(before).find((request) => request.target === target);
      const [value] = head ? headerValues(head, 'authorization') : [];
      const injected = value === undefined ? 'plain' : (/call-\d+/.exec(value)?.[0] ?? 'other');
      const isCalled = injected.startsWith('call-');
      outcomes.push(read !== 'served' ? read : isSprayed && isCalled ? 'served' : injected);
    }
    return outcomes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
  }

  async #take(step: CallbackPlay): Promise<void> {
    const { calls, clock } = this.#peers;
    if (step === 'settle') await Promise.all(this.#requests.map(({ response }) => response));
    else if (step === 'release') calls.release();
    else if (step === 'abandon') this.#clients[0]?.reset();
    else if (step === 'ask_on_the_same_tunnel') await this.#askOnOpenTunnel();
    else if ('called' in step) await calls.called(step.called);
    else if ('advanceMs' in step) clock.ms += step.advanceMs;
    else if ('apply' in step) this.#applyOrThrow(step);
    else if ('spray' in step)
      for (let i = 0; i < step.spray; i += 1) await this.#ask(`h${i}.api.test`, undefined, undefined, true);
    else if ('start' in step) for (let i = 0; i < step.start; i += 1) await this.#ask(step.to);
    else
      for (let i = 0; i < step.ask; i += 1) {
        await this.#ask(step.to, step.target, step.fields);
        await this.#requests.at(-1)?.response;
      }
  }

  #applyOrThrow({ apply }: Extract<CallbackPlay, { apply: unknown }>): void {
    const applied = this.#peers.apply(apply);
    if (!applied.ok) throw new Error(`the document of a row is invalid: ${JSON.stringify(applied.issues)}`);
  }

  /** Resolves when the request was sent. */
  async #ask(
    to = 'api.test',
    form = '{PATH}',
    fields: readonly string[] = [],
    isSprayed = false,
  ): Promise<void> {
    const opened = await this.#tunnel(to);
    if (opened) await this.#send(opened.client, opened.authority, { form, fields, isSprayed });
    else this.#requests.push({ target: '', response: Promise.resolve('refused'), isSprayed });
  }

  async #askOnOpenTunnel(): Promise<void> {
    this.#openTunnel ??= (await this.#tunnel('api.test'))?.client;
    if (!this.#openTunnel) throw new Error('a tunnel that must open was refused');
    const authority = `api.test:${this.#peers.origin.port}`;
    await this.#send(this.#openTunnel, authority, { form: '{PATH}', fields: [], isSprayed: false });
    await this.#requests.at(-1)?.response;
  }

  /** Undefined where the CONNECT itself is refused. */
  async #tunnel(to: string): Promise<{ client: WireClient; authority: string } | undefined> {
    const { proxy, origin } = this.#peers;
    const authority = /:\d+$/.test(to) ? to : `${to}:${origin.port}`;
    const client = await WireClient.connect(proxy.port);
    this.#clients.push(client);
    const { status } = await client.openTunnel(authority);
    if (status !== 200) return undefined;
    const name = to.replace(/:\d+$/, '').replace(/\.$/, '').toLowerCase();
    await client.startTls({ ca: proxy.caPem, name });
    return { client, authority };
  }

  async #send(client: WireClient, authority: string, { form, fields, isSprayed }: Form): Promise<void> {
    const path = `/${this.#requests.length}`;
    const target = form.replace('{PATH}', path).replace('{AUTHORITY}', authority);
    // Each request has its own path, so that the request at the origin can be found.
    const lines = [`GET ${target} HTTP/1.1`, `Host: ${authority}`, ...fields, '', ''];
    await client.send(lines.join('\r\n'));
    this.#requests.push({ target: path, response: responseOf(client), isSprayed });
  }
}

async function responseOf(client: WireClient): Promise<string> {
  try {
    const { head, text } = await client.readResponse();
    const code = headerValues(head, 'x-sallyport-error')[0];
    if (head.status === 200 && code === undefined) return text;
    const isExact = head.status === 502 && text === FAILED;
    return code === 'callback_failed' ? (isExact ? 'failed' : 'failed otherwise') : (code ?? 'odd');
  } catch {
    return 'gone';
  }
}

const FAILED = '{"error":"callback_failed","message":"callback resolution failed"}\n';
