// Which version of HTTP an intercepted tunnel uses: the upstream's choice of what the client offers by ALPN. If no earlier
// choice is cached, the upstream is dialled with the client's own list before we respond to the client's handshake, and
// the connection then serves the first request. No byte of a request is sent here.
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
  /** Why the upstream could not be dialled. */
  readonly dialFailure?: SpeculativeDialFailure;
};

/** The version that needs no dial: the only one that the client offers, or the upstream's cached choice. */
export function knownProtocol(
  authority: Authority,
  offered: readonly Protocol[],
  { hints }: ProxyContext,
): Protocol | undefined {
  return offered.includes('h2') ? hints.get(authority, offered) : 'http/1.1';
}

/**
 * The upstream's choice, if it is not known. If the dial fails: HTTP/1.1 if the client offers it, and the failure. Undefined
 * if the client left.
 */
export async function negotiate(
  socket: Socket,
  authority: Authority,
  offered: readonly Protocol[],
  context: ProxyContext,
): Promise<Negotiated | undefined> {
  const protocol = offered.includes('http/1.1') ? 'http/1.1' : 'h2';
  // All requests are refused meanwhile, so nothing is dialled for them.
  if (context.recorder.isBlocked) return { protocol };
  const policy = context.policy();
  const purpose: Purpose = { scheme: 'https', authority, alpn: offered };
  const chosen = await whileConnected(socket, (signal) => dialUpstream(purpose, policy, context, signal));
  if (chosen === 'closed') return undefined;
  if (!isRefusal(chosen)) return chosen;
  return { protocol, dialFailure: new SpeculativeDialFailure(chosen, policy) };
}

async function dialUpstream(
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
  // An upstream without ALPN speaks HTTP/1.1, whatever it was offered.
  if (!purpose.alpn.includes(protocol)) return refuse('h2_unavailable', 'no_alpn');
  hints.set(purpose.authority, purpose.alpn, protocol);
  return { protocol };
}

/**
 * Runs `task`, and aborts it when the client leaves. The socket is read meanwhile, because one that is not read does not
 * report that its peer is gone; what was read is put back.
 */
async function whileConnected<T>(
  socket: Socket,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T | 'closed'> {
  const abort = new AbortController();
  const read: Buffer[] = [];
  const { promise: closed, resolve } = Promise.withResolvers<'closed'>();
  const onClosed = (): void => {
    abort.abort();
    resolve('closed');
  };
  const onData = (chunk: Buffer): void => {
    read.push(chunk);
    // After its ClientHello a client has nothing to send before the server responds.
    if (read.reduce((sum, { length }) => sum + length, 0) > MAX_READ_BYTES) onClosed();
  };
  socket.on('data', onData).on('end', onClosed).on('close', onClosed).on('error', onClosed);
  socket.resume();
  try {
    return await Promise.race([task(abort.signal), closed]);
  } finally {
    socket.pause();
    socket.off('data', onData).off('end', onClosed).off('close', onClosed).off('error', onClosed);
    if (abort.signal.aborted) socket.on('error', ignoreLateError).destroy();
    else if (read.length > 0) socket.unshift(Buffer.concat(read));
  }
}

/** A ClientHello of the largest size, and one TLS record more. */
const MAX_READ_BYTES = 65_536 + 16_384;

function ignoreLateError(): void {}
