// The endpoint's side of a row: each call gets the steps that the script has for it, or a good response that contains its
// number. Stores the head and body of each call.
import { SECRET } from '../../invariants/credential-scene.ts';
import { type Exchange, jsonResponse } from '../../support/recording-origin.ts';
import type { CallbackStep } from './callback-script.ts';

export class CallbackCalls {
  heads: string[] = [];
  bodies: string[] = [];
  #responses: readonly (readonly CallbackStep[])[] = [];
  #fill: (text: string) => string = (text) => text;
  #released = Promise.withResolvers<void>();
  #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  /** Discards the calls of the previous row. */
  begin(responses: readonly (readonly CallbackStep[])[], fill: (text: string) => string): void {
    this.heads = [];
    this.bodies = [];
    this.#responses = responses;
    this.#fill = fill;
    this.#released = Promise.withResolvers();
  }

  release(): void {
    this.#released.resolve();
  }

  called(count: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.heads.length >= count) resolve();
    else this.#waiting.push({ count, resolve });
    return promise;
  }

  readonly respond = async (exchange: Exchange): Promise<void> => {
    const { content } = await exchange.readBody();
    this.heads.push(exchange.request.head);
    this.bodies.push(content.toString('utf8'));
    const call = this.heads.length;
    for (const { count, resolve } of this.#waiting) if (call >= count) resolve();
    const good: readonly CallbackStep[] = [{ headers: { Authorization: credentialOf(call) } }];
    for (const step of this.#responses[call - 1] ?? good) await this.#take(step, exchange, call);
  };

  async #take(step: CallbackStep, exchange: Exchange, call: number): Promise<void> {
    if (step === 'hold') await this.#released.promise;
    else if (step === 'closed') await exchange.reader.finished;
    else if (step === 'end') exchange.end();
    else if (step === 'reset') exchange.reset();
    else if ('send' in step) await sendOrBreak(exchange, this.#text(step.send, call));
    else if ('json' in step) await sendOrBreak(exchange, this.#text(jsonText(step.json), call));
    else if ('headers' in step)
      await sendOrBreak(exchange, this.#text(jsonText({ headers: step.headers }), call));
    else if ('drip' in step) for (const byte of step.drip) await sendOrBreak(exchange, byte);
    else while (await sendOrBreak(exchange, step.flood));
  }

  /** Replaces `{CREDENTIAL}`, and `{LENGTH}` by the length of the resulting body. */
  #text(text: string, call: number): string {
    const whole = this.#fill(text).replaceAll('{CREDENTIAL}', credentialOf(call));
    return whole.replace('{LENGTH}', String(whole.length - whole.indexOf('\r\n\r\n') - 4));
  }
}

/** The credential that the nth call returns by default. */
export function credentialOf(call: number): string {
  return `Bearer call-${call}-${SECRET}`;
}

function jsonText(value: unknown): string {
  return jsonResponse(value)
    .toString('latin1')
    .replace(/Content-Length: \d+/, 'Content-Length: {LENGTH}');
}

/** False once the connection is closed: the proxy may close it at any byte. */
function sendOrBreak(exchange: Exchange, text: string): Promise<boolean> {
  return exchange.send(Buffer.from(text, 'latin1')).then(
    () => true,
    () => false,
  );
}
