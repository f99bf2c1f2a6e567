// CONNECT: one authority, for which the policy decides once, then a blind tunnel or an intercepted one.
//
//   refused      a refusal, and the connection is closed: the bytes behind the head are no request (RFC 9931)
//   tunnel       dials first, 200 when the upstream is connected, then forwards bytes in both directions, unread
//   intercepted  200 at once; a later failure is an HTTP response inside the tunnel, where the client can read it
import type { Socket } from 'node:net';
import { describeBug } from '../../base/log.ts';
import { requestFraming } from '../../http1/framing.ts';
import { isHeadError } from '../../http1/head-error.ts';
import type { RequestHead } from '../../http1/head-parser.ts';
import { parseAddress } from '../../base/address.ts';
import { type Authority, parseAuthority } from '../../policy/authority/authority.ts';
import type { Cover, Policy } from '../../policy/policy.ts';
import type { ClientConnection } from '../h1/client-connection.ts';
import { intercept } from './intercept.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import { type SpliceEnd, splice } from '../splice.ts';

const ESTABLISHED = Buffer.from('HTTP/1.1 200 Connection established\r\n\r\n', 'latin1');

/** Handles a CONNECT on the proxy port; `rest` is what the client sent behind its head. */
export function startConnect(connection: ClientConnection, head: RequestHead, rest: Buffer): void {
  const { context } = connection.scope;
  const authority = connectAuthority(head);
  if (isRefusal(authority)) return connection.refuse(authority, { method: 'CONNECT' });
  const details = { method: 'CONNECT', authority: authority.text };
  if (context.recorder.isBlocked) return connection.refuse(refuse('record_sink_blocked'), details);
  if (authority.host === context.reserved.name) return connection.refuse(refuse('reserved_host'), details);
  const policy = context.policy();
  const cover = policy.coverOf(authority);
  if (cover.kind === 'refuse') return connection.refuse(refuse(cover.reason, cover.detail), details);
  if (cover.kind === 'tunnel') {
    new Tunnel(connection, { authority, policy, cover }, rest).open();
    return;
  }
  const { socket, scope } = connection;
  connection.detach();
  socket.write(ESTABLISHED);
  if (rest.length > 0) socket.unshift(rest);
  intercept(socket, { ...scope, tunnel: authority, revision: policy.revision });
}

/** The authority of a CONNECT (RFC 9110 §9.3.6). Its Host field is ignored: clients disagree about it. */
function connectAuthority(head: RequestHead): Authority | Refusal {
  if (isHeadError(requestFraming(head))) return refuse('malformed_request', 'connect_with_body');
  const authority = parseAuthority(head.bytes.toString('latin1', head.targetStart, head.targetEnd));
  return typeof authority === 'string' ? refuse('authority_invalid', authority) : authority;
}

type TunnelTarget = {
  readonly authority: Authority;
  readonly policy: Policy;
  readonly cover: Cover & { kind: 'tunnel' };
};

/** A blind tunnel: dials the upstream while it watches the client, then splices the two. */
class Tunnel {
  readonly #connection: ClientConnection;
  /** With the policy of the last decision. */
  #target: TunnelTarget;
  readonly #abort = new AbortController();
  readonly #startedMs = performance.now();
  #hasEnded = false;

  constructor(connection: ClientConnection, target: TunnelTarget, rest: Buffer) {
    this.#connection = connection;
    this.#target = target;
    connection.bufferAhead(rest);
  }

  open(): void {
    this.#connection.run(this);
    if (this.#connection.hasOverflowed) return this.#refuseOverflow();
    const { authority, policy, cover } = this.#target;
    const { dialler } = this.#connection.scope.context;
    dialler
      .dial(
        {
          authority,
          scheme: 'tunnel',
          alpn: [],
          named: 'no',
          isPortListed: cover.portListed,
          denies: (address) => policy.deniesAddress(address, authority.port),
        },
        this.#abort.signal,
      )
      .then((opened) => this.#onDialled(opened))
      .catch((error: unknown) => {
        const hadEnded = this.#hasEnded;
        this.onBug(error);
        // After it was detached nothing else would close it.
        if (hadEnded) this.#connection.socket.destroy();
      });
  }

  #onDialled(opened: Socket | Refusal): void {
    if (isRefusal(opened)) return this.#refuse(opened);
    if (this.#hasEnded) {
      opened.destroy();
      return;
    }
    const outdated = this.#refuseOutdated(opened);
    if (outdated) {
      opened.destroy();
      return this.#refuse(outdated, this.#connection.scope.context.policy());
    }
    this.#hasEnded = true;
    const { socket, scope } = this.#connection;
    const { timeouts, counters } = scope.context;
    const fromClient = this.#connection.detach();
    socket.write(ESTABLISHED);
    const ending = splice({
      client: socket,
      upstream: opened,
      fromClient,
      idleMs: timeouts.tunnelIdleMs,
      halfClosedMs: timeouts.halfClosedMs,
      counted: { by: counters, as: 'tunnel' },
    })
      .then((end) => this.#onSpliceEnd(end))
      // The connection is released after it.
      .catch((error: unknown) => this.onBug(error));
    this.#connection.setSpliced(ending, opened);
  }

  #onSpliceEnd({ bytesUp, bytesDown, reason }: SpliceEnd): void {
    this.#record({
      outcome: 'tunnelled',
      reason: reason === 'closed' ? this.#target.cover.reason : reason,
      bytesUp,
      bytesDown,
    });
  }

  /** The policy may have changed while the upstream was dialled: the policy in force decides on the connection. */
  #refuseOutdated(opened: Socket): Refusal | undefined {
    const { authority } = this.#target;
    const policy = this.#connection.scope.context.policy();
    if (policy === this.#target.policy) return undefined;
    const cover = policy.coverOf(authority);
    if (cover.kind === 'refuse') return refuse(cover.reason, cover.detail);
    if (cover.kind === 'intercept') return refuse('rules_changed');
    const address = parseAddress(opened.remoteAddress ?? '');
    const isDenied = !address || policy.deniesAddress(address, authority.port);
    if (isDenied) return refuse('access_denied', 'deny_list address');
    this.#target = { authority, policy, cover };
    return undefined;
  }

  #refuse(refusal: Refusal, { revision }: Policy = this.#target.policy): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { authority } = this.#target;
    this.#connection.refuse(refusal, { method: 'CONNECT', authority: authority.text, revision });
  }

  #record(end: {
    outcome: 'tunnelled' | 'failed';
    reason: string;
    bytesUp: number;
    bytesDown: number;
  }): void {
    const { policy, authority } = this.#target;
    this.#connection.record(
      {
        revision: policy.revision,
        method: 'CONNECT',
        scheme: 'tunnel',
        authority: authority.text,
        outcome: end.outcome,
        reason: end.reason,
        ...(end.outcome === 'tunnelled' ? { status: 200 } : {}),
        bytes_up: end.bytesUp,
        bytes_down: end.bytesDown,
      },
      this.#startedMs,
    );
  }

  onClientBytes(chunk: Buffer): void {
    this.#connection.bufferAhead(chunk);
    if (this.#connection.hasOverflowed) this.#refuseOverflow();
  }

  /** Bytes beyond the limit were dropped: the tunnel would carry another stream than the client's. */
  #refuseOverflow(): void {
    this.#abort.abort();
    this.#refuse(refuse('malformed_request', 'too_much_before_200'));
  }

  onBug(error: unknown): void {
    this.#connection.scope.context.log.error(describeBug(error), 'tunnel failed');
    this.#refuse(refuse('internal_error'));
  }

  onClientDrain(): void {}

  onClientIdle(): void {}

  onClientClosed(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#abort.abort();
    this.#record({ outcome: 'failed', reason: 'client_gone', bytesUp: 0, bytesDown: 0 });
  }
}
