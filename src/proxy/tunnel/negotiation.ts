// Which version of HTTP an intercepted tunnel speaks: what its host chooses of what its client offers. Where nothing is
// remembered of the host it is dialled with the client's own list, before the client's handshake is answered; the
// connection then serves the client's first request. No byte of a request leaves here.
import type { Socket } from 'node:net';
import type { Authority } from '../../policy/authority/authority.ts';
import type { Policy } from '../../policy/policy.ts';
import type { Protocol } from '../upstream/alpn.ts';
import type { ProxyContext } from '../context.ts';
import { chosenProtocol } from '../upstream/dial.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import { SpeculativeDialFailure } from '../upstream/speculative-dial-failure.ts';
import { type Purpose, dialTarget, poolKey } from '../gate/connection-source.ts';

export type Negotiated = {
  readonly protocol: Protocol;
  /** Why the host could not be asked. */
  readonly dialFailure?: SpeculativeDialFailure;
};

/**
 * What the host chose. Where it cannot be asked, HTTP/1.1 if the client offers it, and why. Undefined if the client left.
 */
export async function negotiate(
  socket: Socket,
  authority: Authority,
  offered: readonly Protocol[],
  context: ProxyContext,
): Promise<Negotiated | undefined> {
  if (!offered.includes('h2')) return { protocol: 'http/1.1' };
  const hint = context.hints.get(authority, offered);
  if (hint) return { protocol: hint };
  const protocol = offered.includes('http/1.1') ? 'http/1.1' : 'h2';
  // Whatever is asked for is refused meanwhile, so nobody is dialled for it.
  if (context.recorder.isBlocked) return { protocol };
  const policy = context.policy();
  const purpose: Purpose = { scheme: 'https', authority, alpn: offered };
  const chosen = await watched(socket, (signal) => askHost(purpose, policy, context, signal));
  if (chosen === 'gone') return undefined;
  if (!isRefusal(chosen)) return chosen;
  return { protocol, dialFailure: new SpeculativeDialFailure(chosen, policy) };
}

async function askHost(
  purpose: Purpose,
  policy: Policy,
  { dialler, hints, sessions, upstream }: ProxyContext,
  signal: AbortSignal,
): Promise<Negotiated | Refusal> {
  const socket = await dialler.dial(dialTarget(policy, purpose), signal);
  if (isRefusal(socket)) return socket;
  const protocol = chosenProtocol(socket);
  const key = poolKey(policy, purpose);
  if (protocol === 'h2') await sessions.adopt(key, socket);
  else upstream.adopt(key, socket);
  // A host that knows no ALPN speaks HTTP/1.1, whatever it was offered.
  if (!purpose.alpn.includes(protocol)) return refuse('h2_unavailable', 'no_alpn');
  hints.set(purpose.authority, purpose.alpn, protocol);
  return { protocol };
}

/** Reads on while `ask` runs, because a socket that does not read never learns that its peer is gone; nothing is lost. */
async function watched<T>(socket: Socket, ask: (signal: AbortSignal) => Promise<T>): Promise<T | 'gone'> {
  const abort = new AbortController();
  const read: Buffer[] = [];
  const { promise: gone, resolve } = Promise.withResolvers<'gone'>();
  const onGone = (): void => {
    abort.abort();
    resolve('gone');
  };
  const onData = (chunk: Buffer): void => {
    read.push(chunk);
    // Behind its hello a client has nothing to say before it is answered.
    if (read.reduce((sum, { length }) => sum + length, 0) > MAX_READ_BYTES) onGone();
  };
  socket.on('data', onData).on('end', onGone).on('close', onGone).on('error', onGone);
  socket.resume();
  try {
    return await Promise.race([ask(abort.signal), gone]);
  } finally {
    socket.pause();
    socket.off('data', onData).off('end', onGone).off('close', onGone).off('error', onGone);
    if (abort.signal.aborted) socket.on('error', ignoreLateError).destroy();
    else if (read.length > 0) socket.unshift(Buffer.concat(read));
  }
}

/** A hello at its limit, and one record more. */
const MAX_READ_BYTES = 65_536 + 16_384;

function ignoreLateError(): void {}
