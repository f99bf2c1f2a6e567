// The connection to a target that its owner dials: one for each request and never kept, so that bytes behind a response are the
// response of no other request, and a connection that the owner counts or cuts carries nothing else.
import { Agent } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { cutSocket } from './cut-socket.ts';
import { Refusal, refuse } from './refusal.ts';
import type { TargetAddress } from './target.ts';

type Dialed = Extract<TargetAddress, { readonly connect: unknown }>;
type OnConnected = (error: Error | null, stream: Duplex) => void;

/** What the client gets in place of a connection. */
export class NotConnected extends Error {
  override readonly name: string = 'NotConnected';
  readonly refusal: Refusal;

  constructor(refusal: Refusal, cause?: unknown) {
    super('the target could not be connected to', { cause });
    this.refusal = refusal;
  }
}

export class DialingAgent extends Agent {
  readonly #address: Dialed;
  readonly #connectMs: number;
  readonly #aborting: AbortController = new AbortController();

  constructor(address: Dialed, connectMs: number) {
    super({ keepAlive: false });
    this.#address = address;
    this.#connectMs = connectMs;
  }

  /** The connection is not wanted any more; one that is in use stays. */
  abort(): void {
    this.#aborting.abort();
  }

  override createConnection(_: object, onConnected?: OnConnected): undefined {
    void this.#connect().then(
      (stream) => onConnected?.(null, stream),
      (error: Error) => onConnected?.(error, undefined as never),
    );
  }

  async #connect(): Promise<Duplex> {
    const { signal } = this.#aborting;
    const given = Promise.withResolvers<never>();
    const giveUp = (refusal: Refusal): void => {
      given.reject(new NotConnected(refusal));
      this.#aborting.abort();
    };
    const timer = setTimeout(() => giveUp(refuse('target_timeout')), this.#connectMs);
    const onAbort = (): void => giveUp(refuse('target_closed'));
    signal.addEventListener('abort', onAbort, { once: true });
    const dialed = this.#dial(signal);
    try {
      return withDestroySoon(await Promise.race([dialed, given.promise]));
    } catch (error) {
      // It may arrive all the same, and nobody reads it.
      dialed.then(discard, () => undefined);
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #dial(signal: AbortSignal): Promise<Duplex> {
    let connected: Duplex | Refusal;
    try {
      connected = await this.#address.connect(signal);
    } catch (error) {
      throw new NotConnected(refuse('target_unreachable'), error);
    }
    if (connected instanceof Refusal) throw new NotConnected(connected);
    return connected;
  }
}

function discard(stream: Duplex): void {
  stream.on('error', () => undefined);
  cutSocket(stream);
}

/**
 * node:http calls it behind the last response. A stream without it would only be ended, and stay open as long as the target
 * likes.
 */
function withDestroySoon(stream: Duplex): Duplex {
  if (stream instanceof Socket || 'destroySoon' in stream) return stream;
  const destroySoon = (): void => {
    if (stream.writableFinished) return void stream.destroy();
    stream.once('finish', () => stream.destroy());
    stream.end();
  };
  return Object.assign(stream, { destroySoon });
}
