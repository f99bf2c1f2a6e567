// A TLS host whose manners and certificate change while it runs. Sound, it answers only requests that bring the right
// credential. It knows nothing of the proxy.
import type { SecureContext } from 'node:tls';
import { headerValues } from '../support/message-reader.ts';
import { createOrigin, type Exchange, type RecordingOrigin, response } from '../support/recording-origin.ts';
import type { TestAuthority } from '../support/test-authority.ts';

export type Manner = (exchange: Exchange) => Promise<void> | void;
/** The certificate that is shown for a name. */
export type Identity = (name: string) => SecureContext;

export type StruckHost = AsyncDisposable & {
  readonly origin: RecordingOrigin;
  /** Requests that came without the credential that they should bring. */
  readonly misdelivered: number;
  behave(manner: Manner): void;
  show(identity: Identity): void;
  /** As it began. */
  recover(): void;
};

export async function createStruckHost(options: {
  readonly authority: TestAuthority;
  readonly names: readonly string[];
  readonly isCredential: (value: string) => boolean;
  /** Each answer is the last of its connection, so that the next request meets what the host is by then. */
  readonly endsConnections: boolean;
}): Promise<StruckHost> {
  const { authority, names } = options;
  let misdelivered = 0;
  const sound: Manner = async ({ request, readBody, send, end }) => {
    await readBody();
    const [credential = ''] = headerValues(request, 'authorization');
    if (!options.isCredential(credential)) misdelivered += 1;
    const [nonce = ''] = headerValues(request, 'x-nonce');
    await send(response(200, options.endsConnections ? [['Connection', 'close']] : [], nonce));
    if (options.endsConnections) end();
  };
  let manner = sound;
  let identity: Identity = (name) => authority.contextFor(name);
  const origin = await createOrigin({
    tls: {
      authority: { certificatePem: authority.certificatePem, contextFor: (name) => identity(name) },
      names,
    },
    respond: (exchange) => manner(exchange),
  });
  return {
    origin,
    get misdelivered() {
      return misdelivered;
    },
    behave(next) {
      manner = next;
    },
    show(next) {
      identity = next;
    },
    recover() {
      manner = sound;
      identity = (name) => authority.contextFor(name);
    },
    [Symbol.asyncDispose]: () => origin.close(),
  };
}
