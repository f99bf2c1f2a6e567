// Ways to turn one request into two, or into none.
import type { Mutation } from './mutation.ts';

export const oneToOne: readonly Mutation[] = [
  {
    invariant: 'I2',
    name: 'every method is retried',
    file: 'src/proxy/h1/exchange.ts',
    text: "this.#record.upstream_reused && isIdempotent && framing.kind === 'none'",
    replacement: "this.#record.upstream_reused && framing.kind === 'none'",
    breaks: 'a POST on a dead connection is sent twice',
  },
  {
    invariant: 'I2',
    name: 'requests with bodies are retried',
    file: 'src/proxy/h1/exchange.ts',
    text: "isIdempotent && framing.kind === 'none' && !this.#hasRetried",
    replacement: 'isIdempotent && !this.#hasRetried',
    breaks: 'a request is sent again without the body that was already sent',
  },
  {
    invariant: 'I2',
    name: 'a body that was not sent counts as sent',
    file: 'src/proxy/h1/exchange.ts',
    text: 'const isEarly = !this.#request.isForwarded;',
    replacement: 'const isEarly = !this.#request.isComplete;',
    breaks: "the next request becomes the body that an origin's 401 to Expect left outstanding",
  },
  {
    invariant: 'I2',
    name: 'Content-Length and Transfer-Encoding together',
    file: 'src/http1/framing.ts',
    text: 'if (length !== -1) return headErrors.lengthAndEncoding;',
    replacement: '',
    breaks: 'the origin may end the body elsewhere and read a second request from it',
  },
  {
    invariant: 'I2',
    name: 'chunk extensions in requests are relayed',
    file: 'src/http1/chunk-walker.ts',
    text: 'if (this.#isRequest) return headErrors.chunkExtensionRefused;',
    replacement: '',
    breaks: 'one hop skips bytes that another reads',
  },
  {
    invariant: 'I2',
    name: 'any 101 is accepted as an upgrade',
    file: 'src/proxy/gate/response-check.ts',
    text: "const isAsked = plan.isUpgrade && connection.upgrade && connection.upgradeToken === 'websocket';",
    replacement: 'const isAsked = true;',
    breaks: 'unframed bytes reach an origin without a requested upgrade',
  },
  {
    invariant: 'I2',
    name: 'a refused CONNECT leaves its connection open',
    file: 'src/proxy/h1/client-connection.ts',
    text: 'const { keepAlive = false, ...about } = details;',
    replacement: 'const { keepAlive = true, ...about } = details;',
    breaks: 'bytes for the tunnel are read as requests to the proxy',
  },
];
