// An origin over HTTP/1.1 that responds to each request with its own nonce, in the manner that its path asks for: early, late,
// cut, reset, with bytes behind the response. It counts what arrives and checks nothing.
import { type Exchange, type RecordingOrigin, createOrigin, response } from '../support/recording-origin.ts';
import type { TestAuthority } from '../support/test-authority.ts';

export const manners = [
  'prompt',
  'late',
  'chunked',
  'interim',
  'early',
  'closing',
  'silent',
  'cut',
  'extra',
] as const;
export type Manner = (typeof manners)[number];

/** What follows a response unasked; no client may ever receive it. */
export const FORGED = 'forged-response';
const forged = String(response(200, [], FORGED));
const REST = 'x'.repeat(40);

export function responseOf(nonce: string): string {
  return `response-of-${nonce}-${REST}`;
}

export type PipelineOrigin = {
  readonly origin: RecordingOrigin;
  readonly arrivals: ReadonlyMap<string, number>;
};

/** Paths are `/nonce/manner`. */
export async function createPipelineOrigin(authority: TestAuthority | undefined): Promise<PipelineOrigin> {
  const arrivals = new Map<string, number>();
  const origin = await createOrigin({
    ...(authority && { tls: { authority, names: ['api.test'] } }),
    async respond(exchange) {
      const [, nonce = '', manner] = exchange.request.target.split('/');
      arrivals.set(nonce, (arrivals.get(nonce) ?? 0) + 1);
      await reply(exchange, nonce, manner as Manner);
    },
  });
  return { origin, arrivals };
}

async function reply(exchange: Exchange, nonce: string, manner: Manner): Promise<void> {
  const { send } = exchange;
  const body = responseOf(nonce);
  const whole = response(200, [], body);
  if (manner === 'silent') return exchange.reset();
  if (manner === 'early') return send(whole);
  await exchange.readBody();
  switch (manner) {
    case 'late':
      // Others overtake it.
      await pass(20);
      return send(whole);
    case 'chunked':
      await send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      for (const piece of [body.slice(0, 5), body.slice(5)])
        await send(`${piece.length.toString(16)}\r\n${piece}\r\n`);
      return send('0\r\n\r\n');
    case 'interim':
      return send(`HTTP/1.1 103 Early Hints\r\nLink: </${nonce}>\r\n\r\n${String(whole)}`);
    case 'closing':
      await send(`HTTP/1.1 200 OK\r\n\r\n${body}`);
      return exchange.end();
    case 'cut':
      await send(String(whole).slice(0, -REST.length));
      return exchange.reset();
    case 'extra':
      return send(`${String(whole)}${forged}`);
    default:
      return send(whole);
  }
}

async function pass(turns: number): Promise<void> {
  for (let i = 0; i < turns; i += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
