// The request leg: what http-proxy-3 reads of a request, and how its body reaches the target.
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Exchange } from './exchange.ts';
import type { RequestPlan } from './request-plan.ts';

export type RequestLegOwner = {
  /** The request to the target exists; nothing of it was sent yet. */
  onCreated(request: ClientRequest): void;
  /** The target asks for the body that the client holds back. */
  onContinue(): void;
  onResponse(response: IncomingMessage): void;
  onBytes(count: number): void;
};

/**
 * It has no `method`: http-proxy-3 gets that as an option. By `method` its pass deleteLength replaces the chunked coding of a
 * DELETE or OPTIONS with `Content-Length: 0` and sends the body all the same, which the target reads as the next request
 * (CVE-2026-29057).
 */
export class RequestLeg<Owner extends RequestLegOwner = RequestLegOwner> {
  readonly owner: Owner;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly httpVersion: string = '1.1';
  readonly httpVersionMajor: number = 1;
  readonly socket: IncomingMessage['socket'];
  readonly #incoming: IncomingMessage;
  readonly #plan: RequestPlan;

  constructor(owner: Owner, incoming: IncomingMessage, { plan, path }: Pick<Exchange, 'plan' | 'path'>) {
    this.owner = owner;
    this.url = path;
    this.headers = headersOf(incoming.rawHeaders, plan.isUpgrade);
    this.socket = incoming.socket;
    this.#incoming = incoming;
    this.#plan = plan;
  }

  /** NTLM and Negotiate authenticate a connection: what is sent on it next would be sent as this caller (RFC 4559 §6). */
  get authenticatesConnection(): boolean {
    const value = this.headers['authorization'];
    if (value === undefined) return false;
    return typeof value === 'string'
      ? CONNECTION_SCHEME.test(value)
      : value.some((one) => CONNECTION_SCHEME.test(one));
  }

  /** http-proxy-3 listens for errors of the client, which the connection handles. */
  on(): this {
    return this;
  }

  /** http-proxy-3 has created the request and wants the body piped into it. */
  pipe(request: ClientRequest): void {
    // http-proxy-3 joins paths anew, which loses the `?` of an empty query. These bytes were checked by our parser.
    if (request.path !== this.url) request.path = this.url;
    // Else node:http drops the fields of the response behind the first 2000; bytes are limited.
    request.maxHeadersCount = 0;
    this.owner.onCreated(request);
    const { framing, expectsContinue } = this.#plan;
    if (framing.kind === 'none') return void request.end();
    // Set here, because http-proxy-3 would have written the head with it before the path was set.
    if (expectsContinue)
      request.once('continue', () => this.owner.onContinue()).setHeader('Expect', '100-continue');
    let hasBytes = false;
    const incoming = this.#incoming;
    incoming.on('data', (piece: Buffer) => {
      hasBytes = true;
      this.owner.onBytes(piece.length);
      if (!request.write(piece)) incoming.pause();
    });
    request.on('drain', () => incoming.resume());
    // Not after an abort: the target must not take the body for complete.
    incoming.on('end', () => request.end());
    incoming.on('error', () => request.destroy());
    // What came with the head leaves with it. Without a byte the head leaves alone: the body may take its time.
    process.nextTick(() => {
      if (!hasBytes && !request.destroyed) request.flushHeaders();
    });
  }
}

const CONNECTION_SCHEME = /^(?:ntlm|negotiate)\b/i;

/** Every field of the canonical head with all its values, names in lower case. */
function headersOf(rawHeaders: readonly string[], isUpgrade: boolean): RequestLeg['headers'] {
  const headers: Record<string, string | string[]> = Object.create(null);
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    const value = rawHeaders[i + 1] as string;
    const earlier = headers[name];
    if (earlier === undefined) headers[name] = value;
    else if (typeof earlier === 'string') headers[name] = [earlier, value];
    else earlier.push(value);
  }
  return isUpgrade ? { ...headers, connection: 'Upgrade', upgrade: 'websocket' } : headers;
}
