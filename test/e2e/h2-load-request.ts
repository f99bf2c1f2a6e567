// The requests of a load over HTTP/2, all different, and the verdict on each when it has ended. A request with the response
// of another is crossed; one that does not end the way the origin ended it is lost.
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2';
import { type Asked, INJECTED, RESET_CODE, hashOf, pathOf, sign } from './h2-load-origin.ts';

export type Verdict =
  /** Its own complete response. */
  | 'whole'
  /** Reset by the origin, after nothing but the beginning of its own response. */
  | 'reset'
  /** Reset by this client. */
  | 'cancelled'
  /** Refused without being processed, so that the client may retry. */
  | 'unread'
  | 'lost'
  | 'crossed';

export type LoadRequest = Asked & {
  /** Undefined: a GET. */
  readonly body: Buffer | undefined;
  /** When this client resets it. */
  readonly cancelledAt: 'once' | 'head' | 'data' | undefined;
};
export type Ended = { readonly verdict: Verdict; readonly error: string | undefined };

const SIZES = [64, 0, 2_048, 64, 512, 64, 16_384, 128, 64, 8_192] as const;
const BODY_SIZES = [32, 512, 0, 4_096] as const;
const BIG_BYTES = 262_144;
// Longer than what is stored for a retry.
const BIG_BODY_BYTES = 100_000;
const CANCELS = ['once', 'head', 'data'] as const;

const bodySource = Buffer.alloc(BIG_BODY_BYTES + 1_000, 'what a client has to say, and more of it; ');

/** The nth request: one in four has a body, few are large. */
export function calmRequest(n: number): LoadRequest {
  const size = n % 500 === 250 ? BIG_BYTES : (SIZES[n % SIZES.length] ?? 0);
  const bodySize = n % 1_000 === 501 ? BIG_BODY_BYTES : (BODY_SIZES[(n >> 2) % BODY_SIZES.length] ?? 0);
  const body = n % 4 === 1 ? bodySource.subarray(n % 997, (n % 997) + bodySize) : undefined;
  return { nonce: `n${n}`, ending: 'whole', size, body, cancelledAt: undefined };
}

/** The nth request; about one in twelve is disturbed. */
export function disturbedRequest(n: number, mayCancel: boolean): LoadRequest {
  const calm = calmRequest(n);
  if (n % 50 === 0) return { ...calm, ending: 'silent' };
  if (n % 50 === 11) return { ...calm, ending: 'cut', size: 16_384 };
  if (n % 50 === 22) return { ...calm, ending: 'unread' };
  if (n % 200 === 33) return { ...calm, ending: 'leave' };
  if (n % 25 === 9 && mayCancel) return { ...calm, size: BIG_BYTES, cancelledAt: CANCELS[n % 3] };
  return calm;
}

export function ask(session: ClientHttp2Session, request: LoadRequest, onEnd: (ended: Ended) => void): void {
  const { nonce, body, cancelledAt } = request;
  const stream = session.request(
    // The client's own value of the injected field is replaced.
    {
      ':path': pathOf(request),
      ':method': body ? 'POST' : 'GET',
      'x-nonce': nonce,
      authorization: 'of the client',
    },
    { endStream: !body },
  );
  if (body) stream.end(body);
  const seen: Seen = { status: 0, signature: undefined, refusal: undefined, pieces: [], isEnded: false };
  const cancel = (): void => stream.close(constants.NGHTTP2_CANCEL);
  if (cancelledAt === 'once') setImmediate(cancel);
  stream.on('error', () => undefined);
  stream.on('response', (headers) => {
    seen.status = Number(headers[':status']);
    seen.signature = headers['x-signature'];
    seen.refusal = headers['x-sallyport-error'];
    if (cancelledAt === 'head') cancel();
  });
  stream.on('data', (piece: Buffer) => {
    seen.pieces.push(piece);
    if (cancelledAt === 'data') cancel();
  });
  stream.on('end', () => (seen.isEnded = true));
  stream.once('close', () => onEnd(judge(request, seen, stream)));
}

type Seen = {
  status: number;
  signature: unknown;
  refusal: unknown;
  readonly pieces: Buffer[];
  isEnded: boolean;
};

function judge(request: LoadRequest, seen: Seen, { rstCode }: ClientHttp2Stream): Ended {
  const { ending, cancelledAt, size, nonce } = request;
  const path = pathOf(request);
  const error = (verdict: 'lost' | 'crossed', what: string): Ended => ({
    verdict,
    error: `${path}: ${what}`,
  });
  const own = sign(path, nonce, hashOf(request.body ?? Buffer.alloc(0)), INJECTED);
  const body = Buffer.concat(seen.pieces);
  const isHeadWrong = seen.signature !== undefined && seen.signature !== own;
  if (isHeadWrong) return error('crossed', 'has the signature of another');
  if (seen.signature === own && !body.equals(Buffer.alloc(size, own).subarray(0, body.length)))
    return error('crossed', 'has the body of another');
  if (cancelledAt) return { verdict: 'cancelled', error: undefined };
  const said = `status ${seen.status} ${String(seen.refusal)}, ${body.length} of ${size} bytes, reset ${rstCode}`;
  // A response that its host ended before its length, and then reset, is malformed (RFC 9113 §8.1.1).
  const resets = ending === 'silent' ? [RESET_CODE] : [RESET_CODE, constants.NGHTTP2_PROTOCOL_ERROR];
  if (ending === 'silent' || ending === 'cut')
    return resets.includes(rstCode) ? { verdict: 'reset', error: undefined } : error('lost', said);
  if (seen.status === 0 && rstCode === constants.NGHTTP2_REFUSED_STREAM)
    return { verdict: 'unread', error: undefined };
  const isWhole = seen.status === 200 && seen.isEnded && rstCode === 0 && body.length === size;
  return isWhole && seen.signature === own ? { verdict: 'whole', error: undefined } : error('lost', said);
}
