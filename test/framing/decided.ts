// What our side decides of a connection's bytes, without a socket: the parser, the plan and the walker in the order in
// which the data path calls them. What is sent is described in the shape in which node:http describes what it read.
import { METHODS } from 'node:http';
import { ChunkWalker } from '../../src/http1/chunk-walker.ts';
import { isHeadError } from '../../src/http1/head-error.ts';
import { Field } from '../../src/http1/field-name.ts';
import { type RequestHead, findField, parseRequestHead } from '../../src/http1/head-parser.ts';
import { parseAuthority } from '../../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../../src/policy/compile.ts';
import type { Policy } from '../../src/policy/policy.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import type { CallbackResolver } from '../../src/callback/resolver.ts';
import { decideRequest } from '../../src/proxy/gate/inject.ts';
import { outgoingRequestHead } from '../../src/proxy/h1/outgoing-head.ts';
import { isRefusal } from '../../src/proxy/refusal.ts';
import { type RequestPlan, planRequest } from '../../src/proxy/gate/request-plan.ts';
import type { EgressRules } from '../../src/proxy/upstream/address-guard.ts';
import { limits } from '../http1/arbitraries.ts';
import { decodeCanonical } from '../http1/message-reading.ts';
import { type Entry, HOST } from './mutated-message.ts';

export type Read = {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, as node's rawHeaders. */
  readonly fields: readonly string[];
  /** As far as it came. */
  body: string;
  isComplete: boolean;
};
export type Decided = {
  /** The last one may be incomplete. */
  readonly requests: readonly Read[];
  /** `refused`: a refusal, then the end. `open`: all is read. `incomplete`: more must come. `closed`: no more is read. */
  readonly ending: 'open' | 'incomplete' | 'refused' | 'closed';
};

/** Undefined where the response decides what the next bytes are, or where node has no such method. */
export function decideBytes(bytes: Buffer, entry: Entry, authorityText: string): Decided | undefined {
  const tunnel = entry === 'plain' ? undefined : parseAuthority(authorityText);
  if (typeof tunnel === 'string') throw new Error(tunnel);
  const requests: Read[] = [];
  if (entry === 'clear') {
    // A record of a TLS handshake: the tunnel would wait for the rest of it.
    if (bytes[0] === 0x16) return undefined;
    // What a tunnel begins with is a ClientHello or a method.
    if (!/^[A-Z]/.test(bytes.toString('latin1', 0, 1))) return { requests, ending: 'refused' };
  }
  for (let at = 0; at < bytes.length; ) {
    const head = parseRequestHead(bytes, at, limits);
    if (head === undefined) return { requests, ending: 'incomplete' };
    if (isHeadError(head)) return { requests, ending: 'refused' };
    const plan = planRequest(head, tunnel, entry === 'tls' ? 'https' : 'http');
    // On the proxy port CONNECT opens a tunnel, and after a wrong token the same connection may try again.
    const showsToken = findField(head, Field.proxyAuthorization) !== -1;
    if (entry === 'plain' && (head.method === 'CONNECT' || showsToken)) return undefined;
    if (isRefusal(plan)) return { requests, ending: 'refused' };
    if (plan.isUpgrade || !METHODS.includes(head.method)) return undefined;
    const { read, end, isInvalid } = readBody(head, plan);
    requests.push(read);
    if (isInvalid) return { requests, ending: 'refused' };
    if (!read.isComplete) return { requests, ending: 'incomplete' };
    if (plan.endsConnection) return { requests, ending: 'closed' };
    at = end;
  }
  return { requests, ending: 'open' };
}

function readBody(
  head: RequestHead,
  plan: RequestPlan,
): { readonly read: Read; readonly end: number; readonly isInvalid: boolean } {
  const { bytes, end: start } = head;
  const read = readHead(plan);
  if (plan.framing.kind !== 'chunked') {
    const length = plan.framing.kind === 'length' ? plan.framing.length : 0;
    const body = bytes.toString('latin1', start, start + length);
    return {
      read: { ...read, body, isComplete: body.length === length },
      end: start + length,
      isInvalid: false,
    };
  }
  const walker = new ChunkWalker('request');
  let emitted = '';
  const end = walker.walk(bytes, start, (piece) => {
    emitted += piece.toString('latin1');
  });
  const body = walker.done ? decodeCanonical(emitted) : '';
  return { read: { ...read, body, isComplete: walker.done }, end, isInvalid: walker.error !== undefined };
}

/** The document of the scene: one rule for the host of every lane. */
export const framingDocument: unknown = {
  rules: [
    {
      name: 'framing',
      match_hosts: [HOST],
      headers: [{ name: 'Authorization', type: 'opaque', value: 'Bearer of the rule' }],
    },
  ],
};
const policy: Policy = policyOf(framingDocument);

function policyOf(document: unknown): Policy {
  const parsed = parseProxyConfig(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  const compiled = compileProxyConfig(parsed.value, () => undefined, 1);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
  return compiled.value;
}

function readHead(plan: RequestPlan): Read {
  const passage = decideRequest({
    ...plan.target,
    policy,
    // Whether a credential may be sent in plaintext is not tested here.
    scheme: 'https',
    egress: {} as EgressRules,
    callbacks: {} as CallbackResolver,
  });
  if (passage instanceof Promise || isRefusal(passage))
    throw new Error('the gate of the test refuses nothing');
  const text = outgoingRequestHead(plan, passage.injection).toString('latin1');
  const [start = '', ...lines] = text.slice(0, -4).split('\r\n');
  const [method = '', target = ''] = start.split(' ');
  const fields = lines.flatMap((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')];
  });
  return { method, target, fields, body: '', isComplete: false };
}
