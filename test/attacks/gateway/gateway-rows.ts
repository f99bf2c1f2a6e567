// The rows of class F that a gateway and a bare http-proxy-3 can be sent: those of the stage `message` in origin-form. Each has the
// expectation that it has for the proxy, without what concerns the injected credential.
import { messageRows } from '../message/message-rows.ts';
import {
  accepted,
  arrival,
  type MessageExpectation,
  type MessageRow,
  refused,
} from '../message/message-script.ts';
import { classOf } from '../row.ts';

const FAR_AHEAD = Array.from({ length: 100 }, () => arrival('GET /ahead', [`X: ${'a'.repeat(900)}`]));

/** Where a gateway is to do something else than the proxy. */
const otherwise: Readonly<Record<string, MessageExpectation>> = {
  // The bytes behind the body are a request for a host that is no target; in a tunnel they contradict its authority.
  'F-11 longer-than-length': {
    arrivals: [arrival('POST /x', ['Content-Length: 3'], 'abc')],
    responses: [{ status: 200 }, { status: 404, code: 'target_not_found' }],
  },
  // node:http knows a list of methods.
  'F-15 body-on-unknown-method': refused(405, 'method_refused'),
  // The gateway stops reading instead of dropping what came ahead.
  'F-21 too-far-ahead': accepted(...FAR_AHEAD),
};

export const framingRows: readonly MessageRow[] = messageRows
  .filter((row) => classOf(row).startsWith('F-') && row.script.on.includes('tunnel'))
  .filter(({ script }) => (script.policy ?? 'bearer') === 'bearer')
  .map((row) => ({ ...row, expect: otherwise[row.id] ?? row.expect }));
