// A TLS host whose behavior and certificate change while it runs. In its normal state it counts requests without the right
// credential. Independent of the proxy.
import type { SecureContext } from 'node:tls';
import { headerValues } from '../support/message-reader.ts';
import { createOrigin, type Exchange, type RecordingOrigin, response } from '../support/recording-origin.ts';
import type { TestAuthority } from '../support/test-authority.ts';

export type Behavior = (exchange: Exchange) => Promise<void> | void;
/** The certificate for a name. */
export type Identity = (name: string) => SecureContext;

export type FailingHost = AsyncDisposable & {
  readonly origin: RecordingOrigin;
  /** The number of requests without the right credential. */
  readonly misdelivered: number;
  behave(behavior: Behavior): void;
  show(identity: Identity): void;
  /** Restores the initial behavior and certificate. */
  recover(): void;
};

export async function createFailingHost(options: {
  readonly authority: TestAuthority;
  readonly names: readonly string[];
  readonly isCredential: (value: string) => boolean;
  /** Closes the connection after each response, so that the next request gets the behavior of that time. */
  readonly endsConnections: boolean;
}): Promise<FailingHost> {
  const { authority, names } = options;
  let misdelivered = 0;
  const normal: Behavior = async ({ request, readBody, send, end }) => {
    await readBody();
    const [credential = ''] = headerValues(request, 'authorization');
    if (!options.isCredential(credential)) misdelivered += 1;
    const [nonce = ''] = headerValues(request, 'x-nonce');
    await send(response(200, options.endsConnections ? [['Connection', 'close']] : [], nonce));
    if (options.endsConnections) end();
  };
  let behavior = normal;
  let identity: Identity = (name) => authority.contextFor(name);
  const origin = await createOrigin({
    tls: {
      authority: { certificatePem: authority.certificatePem, contextFor: (name) => identity(name) },
      names,
    },
    respond: (exchange) => behavior(exchange),
  });
  return {
    origin,
    get misdelivered() {
      return misdelivered;
    },
    behave(next) {
      behavior = next;
    },
    show(next) {
      identity = next;
    },
    recover() {
      behavior = normal;
      identity = (name) => authority.contextFor(name);
    },
    [Symbol.asyncDispose]: () => origin.close(),
  };
}
