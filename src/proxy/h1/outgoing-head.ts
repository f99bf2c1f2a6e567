// The heads that leave: the client's request towards the host, the host's answer towards the client. Pure. Bytes
// that are not ours to change are copied as they came.
import type { ConnectionFields } from '../../http1/connection-fields.ts';
import { Field } from '../../http1/field-name.ts';
import type { ResponseHead } from '../../http1/head-parser.ts';
import { fieldLine, rewriteRequestHead, rewriteResponseHead } from '../../http1/head-writer.ts';
import { type Injection, markReplaced } from '../gate/inject.ts';
import type { RequestPlan } from '../gate/request-plan.ts';
import { markAsking } from '../mask/scrub.ts';

const CONNECTION_CLOSE: Buffer = fieldLine('Connection', 'close');
const CONNECTION_UPGRADE: Buffer = Buffer.concat([
  fieldLine('Connection', 'Upgrade'),
  fieldLine('Upgrade', 'websocket'),
]);

/** The request head as the host receives it; injected lines last. `isScrubbed`: the answer's body will be searched. */
export function outgoingRequestHead(
  plan: RequestPlan,
  injection: Injection | undefined,
  isScrubbed = false,
): Buffer {
  const { head, target, drop } = plan;
  const append: Buffer[] = [];
  if (target.addedHost !== undefined) append.push(fieldLine('Host', target.addedHost));
  // An HTTP/1.0 host keeps the connection open only if asked, and we never ask: its answer may end by closing.
  if (plan.isUpgrade) append.push(CONNECTION_UPGRADE);
  else if (head.minor === 0) append.push(CONNECTION_CLOSE);
  if (isScrubbed) markAsking(head, drop);
  if (injection) {
    markReplaced(head, injection, drop);
    append.push(injection.lines);
  }
  return rewriteRequestHead(head, { target: target.rewritten, drop, append });
}

/** The answer's head as the client receives it. `Alt-Svc` would lead the client around the proxy. */
export function outgoingResponseHead(
  head: ResponseHead,
  connection: ConnectionFields,
  ending: 'keep' | 'close' | 'upgrade',
): Buffer {
  if (leavesUnchanged(head, connection, ending)) return head.bytes.subarray(head.start, head.end);
  const { fields } = head;
  const drop = new Uint8Array(fields.count);
  drop.set(connection.drop);
  for (let i = 0; i < fields.count; i += 1) {
    const id = fields.id(i);
    // Some clients take a length of zero in a 101 for the end of the stream.
    if (id === Field.altSvc || (ending === 'upgrade' && id === Field.contentLength)) drop[i] = 1;
  }
  const append = ending === 'close' ? [CONNECTION_CLOSE] : ending === 'upgrade' ? [CONNECTION_UPGRADE] : [];
  return rewriteResponseHead(head, { drop, append });
}

/** True if the client receives a response's head as the host sent it. */
export function leavesUnchanged(
  { fields }: ResponseHead,
  { drop }: ConnectionFields,
  ending: 'keep' | 'close' | 'upgrade',
): boolean {
  if (ending !== 'keep') return false;
  for (let i = 0; i < fields.count; i += 1)
    if (fields.id(i) === Field.altSvc || (drop.length > 0 && drop[i] === 1)) return false;
  return true;
}
