// What the final response head of an upstream means for both connections: forwarded or refused, reused or closed. Pure.
import type { ConnectionFields } from '../../http1/connection-fields.ts';
import { Field } from '../../http1/field-name.ts';
import type { Framing } from '../../http1/framing.ts';
import { findField, type ResponseHead } from '../../http1/head-parser.ts';
import { bindsConnection } from './connection-auth.ts';
import { type Refusal, refuse } from '../refusal.ts';
import type { RequestPlan } from './request-plan.ts';

export type Response = {
  readonly head: ResponseHead;
  readonly framing: Framing;
  readonly connection: ConnectionFields;
};

/** What happens to the client's connection. `upgrade`: the response is a 101 to the upgrade that we sent. */
export type ResponseEnding = 'keep' | 'close' | 'upgrade';

export type ResponseVerdict =
  | Refusal
  | {
      readonly ending: ResponseEnding;
      /** The upstream's connection may serve another request once the response is complete. */
      readonly isReusable: boolean;
    };

/**
 * `isEarly`: the request body is not sent to its end; `mustEnd`: the client's connection is closed in any case;
 * `hasOverflowed`: bytes that the client sent ahead were dropped.
 */
export function checkResponse(
  { head, framing, connection }: Response,
  plan: RequestPlan,
  state: { readonly isEarly: boolean; readonly mustEnd: boolean; readonly hasOverflowed: boolean },
): ResponseVerdict {
  const refused = rejectResponse(head);
  if (refused) return refused;
  if (head.status === 101) return checkUpgrade(connection, plan, state.hasOverflowed);
  const isUnframed = framing.kind === 'until_close';
  const isKept = !plan.endsConnection && !state.isEarly && !isUnframed && !state.mustEnd;
  const isBound = bindsConnection(head) || bindsConnection(plan.head);
  const isPersistent = !connection.close && head.minor === 1 && !state.isEarly && !isUnframed;
  const isReusable = isPersistent && !isBound && !mayHaveLeftBody(plan, head.status);
  if (isKept) return isReusable ? KEPT : KEPT_ONCE;
  return isReusable ? CLOSED : CLOSED_ONCE;
}

/** How the client gets the body. One of HTTP/1.0 cannot read chunks (RFC 9112 §6.1): it gets their data, ended by a close. */
export function framingForClient(framing: Framing, { head }: RequestPlan): Framing {
  return head.minor === 0 && framing.kind === 'chunked' ? UNTIL_CLOSE : framing;
}

const UNTIL_CLOSE: Framing = Object.freeze({ kind: 'until_close' });

function checkUpgrade(
  connection: ConnectionFields,
  plan: RequestPlan,
  hasOverflowed: boolean,
): ResponseVerdict {
  const isAsked = plan.isUpgrade && connection.upgrade && connection.upgradeToken === 'websocket';
  if (!isAsked) return refuse('upstream_malformed', 'unasked_101');
  // From here on the client's bytes are a stream, and some of its bytes are missing.
  if (hasOverflowed) return refuse('malformed_request', 'too_much_before_101');
  return { ending: 'upgrade', isReusable: false };
}

// Equal verdicts are one object; nearly every request gets the first.
const KEPT: ResponseVerdict = Object.freeze({ ending: 'keep', isReusable: true });
const KEPT_ONCE: ResponseVerdict = Object.freeze({ ending: 'keep', isReusable: false });
const CLOSED: ResponseVerdict = Object.freeze({ ending: 'close', isReusable: true });
const CLOSED_ONCE: ResponseVerdict = Object.freeze({ ending: 'close', isReusable: false });

/** The client's only proxy is this one: an upstream that asks for proxy credentials would get our token. */
export function rejectResponse(head: ResponseHead): Refusal | undefined {
  const isAsking = head.status === 407 || findField(head, Field.proxyAuthenticate) !== -1;
  return isAsking ? refuse('upstream_asks_proxy_auth') : undefined;
}

/**
 * An upstream that responds without reading the body reads it as the next request: the body of one client would become a
 * request without a decision of the gate, and the head behind it, credential included, its body. So a connection is reused
 * only after a body that the method calls for and the status says was accepted (RFC 9112 §9.3; "CL.0" desync).
 */
function mayHaveLeftBody(plan: RequestPlan, status: number): boolean {
  if (plan.isUpgrade) return true;
  return plan.framing.kind !== 'none' && (!methodsWithBody.has(plan.head.method) || status >= 300);
}

const methodsWithBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
