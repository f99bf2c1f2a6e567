// The heads that are sent: the client's request to the upstream, and the upstream's response to the client, each of HTTP/1.1.
// Pure. Bytes that we must not change are copied as they came.
import { type ConnectionFields, nothingDropped } from '../../http1/connection-fields.ts';
import { Field, idSet } from '../../http1/field-name.ts';
import type { Framing } from '../../http1/framing.ts';
import type { ResponseHead } from '../../http1/head-parser.ts';
import { fieldLine, rewriteRequestHead, rewriteResponseHead } from '../../http1/head-writer.ts';
import { type Injection, markReplaced } from '../gate/inject.ts';
import type { RequestPlan } from '../gate/request-plan.ts';
import type { ResponseEnding } from '../gate/response-check.ts';
import { markAsking } from '../mask/scrub.ts';

const ALT_SVC = idSet([Field.altSvc]);
const CONNECTION_CLOSE = fieldLine('Connection', 'close');
const CONNECTION_UPGRADE = Buffer.concat([
  fieldLine('Connection', 'Upgrade'),
  fieldLine('Upgrade', 'websocket'),
]);

/** The request head for the upstream; injected lines last. `isScrubbed`: secrets are masked in the response body. */
export function outgoingRequestHead(
  plan: RequestPlan,
  injection: Injection | undefined,
  isScrubbed = false,
): Buffer {
  const { head, target, drop } = plan;
  if (isScrubbed) markAsking(head, drop);
  if (injection) markReplaced(head, injection, drop);
  const own = ownLines(plan);
  // A spread, even of an empty array, takes more memory than the plan of the request.
  const append = !injection ? own : own === NO_LINES ? [injection.lines] : [...own, injection.lines];
  return rewriteRequestHead(head, { target: target.rewritten, drop, append });
}

/** Lines that depend on the request alone. */
function ownLines({ head, target, isUpgrade }: RequestPlan): readonly Buffer[] {
  // The response of a client of HTTP/1.0 may end by closing, so its upstream may close too.
  const connection = isUpgrade ? CONNECTION_UPGRADE : head.minor === 0 ? CONNECTION_CLOSE : undefined;
  if (connection === undefined && target.addedHost === undefined) return NO_LINES;
  const lines = target.addedHost === undefined ? [] : [fieldLine('Host', target.addedHost)];
  if (connection) lines.push(connection);
  return lines;
}

const NO_LINES: readonly Buffer[] = Object.freeze([]);

/**
 * The response head for the client. Without `Alt-Svc`, which would lead the client around the proxy, and without a coding that
 * its body does not have: `framing` is how the client gets the body.
 */
export function outgoingResponseHead(
  head: ResponseHead,
  connection: ConnectionFields,
  ending: ResponseEnding,
  framing?: Framing,
): Buffer {
  if (isUnchanged(head, connection, ending)) return head.bytes.subarray(head.start, head.end);
  const { fields } = head;
  const drop = nothingDropped(fields.count);
  for (let i = 0; i < fields.count; i += 1) {
    const id = fields.id(i);
    // Some clients read a Content-Length of zero in a 101 as the end of the stream.
    const isLeftOut =
      id === Field.altSvc ||
      (ending === 'upgrade' && id === Field.contentLength) ||
      (framing?.kind === 'until_close' && id === Field.transferEncoding);
    if (isLeftOut || connection.drop[i] === 1) drop[i] = 1;
  }
  const append = ending === 'close' ? [CONNECTION_CLOSE] : ending === 'upgrade' ? [CONNECTION_UPGRADE] : [];
  return rewriteResponseHead(head, { drop, append });
}

/** True if the response head is forwarded unchanged. */
export function isUnchanged(
  { fields, minor }: ResponseHead,
  { drop }: ConnectionFields,
  ending: ResponseEnding,
): boolean {
  if (ending !== 'keep' || minor === 0) return false;
  if (fields.hasAny(ALT_SVC)) return false;
  for (let i = 0; i < drop.length; i += 1) if (drop[i] === 1) return false;
  return true;
}
