// The heads that are sent: the client's request to the upstream, and the upstream's response to the client. Pure. Bytes that
// we must not change are copied as they came.
import type { ConnectionFields } from '../../http1/connection-fields.ts';
import { Field } from '../../http1/field-name.ts';
import type { ResponseHead } from '../../http1/head-parser.ts';
import { fieldLine, rewriteRequestHead, rewriteResponseHead } from '../../http1/head-writer.ts';
import { type Injection, markReplaced } from '../gate/inject.ts';
import type { RequestPlan } from '../gate/request-plan.ts';
import type { ResponseEnding } from '../gate/response-check.ts';
import { markAsking } from '../mask/scrub.ts';

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
  const append: Buffer[] = [];
  if (target.addedHost !== undefined) append.push(fieldLine('Host', target.addedHost));
  // An HTTP/1.0 upstream keeps the connection open only if asked. We never ask: its response may end by closing.
  if (plan.isUpgrade) append.push(CONNECTION_UPGRADE);
  else if (head.minor === 0) append.push(CONNECTION_CLOSE);
  if (isScrubbed) markAsking(head, drop);
  if (injection) {
    markReplaced(head, injection, drop);
    append.push(injection.lines);
  }
  return rewriteRequestHead(head, { target: target.rewritten, drop, append });
}

/** The response head for the client. Without `Alt-Svc`, which would lead the client around the proxy. */
export function outgoingResponseHead(
  head: ResponseHead,
  connection: ConnectionFields,
  ending: ResponseEnding,
): Buffer {
  if (isUnchanged(head, connection, ending)) return head.bytes.subarray(head.start, head.end);
  const { fields } = head;
  const drop = new Uint8Array(fields.count);
  drop.set(connection.drop);
  for (let i = 0; i < fields.count; i += 1) {
    const id = fields.id(i);
    // Some clients read a Content-Length of zero in a 101 as the end of the stream.
    if (id === Field.altSvc || (ending === 'upgrade' && id === Field.contentLength)) drop[i] = 1;
  }
  const append = ending === 'close' ? [CONNECTION_CLOSE] : ending === 'upgrade' ? [CONNECTION_UPGRADE] : [];
  return rewriteResponseHead(head, { drop, append });
}

/** True if the response head is forwarded unchanged. */
export function isUnchanged(
  { fields }: ResponseHead,
  { drop }: ConnectionFields,
  ending: ResponseEnding,
): boolean {
  if (ending !== 'keep') return false;
  for (let i = 0; i < fields.count; i += 1)
    if (fields.id(i) === Field.altSvc || (drop.length > 0 && drop[i] === 1)) return false;
  return true;
}
