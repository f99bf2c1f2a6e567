// Named ways to break each invariant, as one exact replacement in one source file. The invariant's own tests must
// see every one of them (scripts/mutants.ts runs them); a test holds that each text still stands where it stood.

export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I6' | 'I12';
export type Mutation = {
  readonly invariant: Invariant;
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly text: string;
  readonly replacement: string;
  /** What the broken proxy does. */
  readonly breaks: string;
};

/** Where the tests of each invariant are. */
export const invariantTests: Readonly<Record<Invariant, string>> = {
  I1: 'test/invariants/i1-destination.test.ts',
  I2: 'test/invariants/i2-one-to-one.test.ts',
  I3: 'test/invariants/i3-judged-is-sent.test.ts',
  I4: 'test/invariants/i4-exactly-once.test.ts',
  I6: 'test/invariants/i6-fail-closed.test.ts',
  I12: 'test/invariants/i12-right-answer.test.ts',
};

const destination: readonly Mutation[] = [
  {
    invariant: 'I1',
    name: 'one pool for all hosts',
    file: 'src/proxy/upstream-lease.ts',
    text: '${scheme}://${target.authority.text}',
    replacement: '${scheme}://',
    breaks: 'a connection that proved one name carries the credential of another',
  },
  {
    invariant: 'I1',
    name: 'one pool for both schemes',
    file: 'src/proxy/upstream-lease.ts',
    text: '${scheme}://${target.authority.text}',
    replacement: '${target.authority.text}',
    breaks: 'a request judged as https leaves on a connection in clear',
  },
  {
    invariant: 'I1',
    name: 'one pool for all revisions',
    file: 'src/proxy/upstream-lease.ts',
    text: 'return `${revision} `;',
    replacement: "return ' ';",
    breaks: 'what an older document warmed serves a newer one',
  },
  {
    invariant: 'I1',
    name: 'no cleartext check',
    file: 'src/proxy/inject.ts',
    text: "request.scheme === 'http' && !mayInjectCleartext(authority, request.egress)",
    replacement: 'false',
    breaks: 'credentials leave over http://',
  },
  {
    invariant: 'I1',
    name: 'loopback by its spelling alone',
    file: 'src/proxy/address-guard.ts',
    text: 'if (isLoopback && egress.allowLoopback) return true;',
    replacement: 'if (isLoopback) return true;',
    breaks: 'a proxy that others reach sends credentials in clear to its own loopback',
  },
  {
    invariant: 'I1',
    name: 'our own CA vouches for hosts',
    file: 'src/sidecar/sidecar.ts',
    text: 'without: ca, ',
    replacement: '',
    breaks: 'a peer with a leaf of the proxy is taken for the host',
  },
  {
    invariant: 'I1',
    name: 'Host need not agree',
    file: 'src/proxy/request-target.ts',
    text: "if (named.text !== authority.text) return refuse('authority_mismatch', 'Host');",
    replacement: '',
    breaks: 'the host judged is not the host named to the origin',
  },
  {
    invariant: 'I1',
    name: 'SNI need not agree',
    file: 'src/proxy/intercept.ts',
    text: 'serverName === undefined || serverName === tunnel.host',
    replacement: 'serverName === undefined || tunnel.host',
    breaks: 'a handshake for another name is not turned away',
  },
];

const oneToOne: readonly Mutation[] = [
  {
    invariant: 'I2',
    name: 'every method is repeated',
    file: 'src/proxy/exchange.ts',
    text: "this.#record.upstream_reused && isIdempotent && framing.kind === 'none'",
    replacement: "this.#record.upstream_reused && framing.kind === 'none'",
    breaks: 'a POST that met a dead connection is sent twice',
  },
  {
    invariant: 'I2',
    name: 'bodies are repeated',
    file: 'src/proxy/exchange.ts',
    text: "isIdempotent && framing.kind === 'none' && !this.#hasRetried",
    replacement: 'isIdempotent && !this.#hasRetried',
    breaks: 'a request is sent again without the body that already left',
  },
  {
    invariant: 'I2',
    name: 'a held body counts as sent',
    file: 'src/proxy/exchange.ts',
    text: 'const isEarly = !this.#request.isPassedOn;',
    replacement: 'const isEarly = !this.#request.isComplete;',
    breaks: "the next request becomes the body that an origin's 401 to Expect left outstanding",
  },
  {
    invariant: 'I2',
    name: 'length and coding together',
    file: 'src/http1/framing.ts',
    text: 'if (length !== -1) return faults.lengthAndEncoding;',
    replacement: '',
    breaks: 'the origin may cut the body elsewhere and find a second request in it',
  },
  {
    invariant: 'I2',
    name: 'chunk extensions in requests',
    file: 'src/http1/chunk-walker.ts',
    text: 'if (this.#isRequest) return faults.chunkExtensionRefused;',
    replacement: '',
    breaks: 'bytes that one hop skips and another reads',
  },
  {
    invariant: 'I2',
    name: 'any 101 is an upgrade',
    file: 'src/proxy/answer.ts',
    text: "const isAsked = plan.isUpgrade && connection.upgrade && connection.upgradeToken === 'websocket';",
    replacement: 'const isAsked = true;',
    breaks: 'unframed bytes reach an origin that was asked nothing of the kind',
  },
  {
    invariant: 'I2',
    name: 'a refused CONNECT leaves its connection open',
    file: 'src/proxy/client-connection.ts',
    text: 'const { method, authority, keepAlive = false } = details;',
    replacement: 'const { method, authority, keepAlive = true } = details;',
    breaks: 'bytes meant for the tunnel are read as requests to the proxy',
  },
];

const judgedIsSent: readonly Mutation[] = [
  {
    invariant: 'I3',
    name: 'ambiguous spellings pass',
    file: 'src/policy/policy.ts',
    text: "if (typeof readings === 'string') return ambiguousPath(readings);",
    replacement: "if (typeof readings === 'string') return decision;",
    breaks: 'a path that an origin resolves out of /v1 carries the credential',
  },
  {
    invariant: 'I3',
    name: 'the path is judged in one spelling',
    file: 'src/policy/policy.ts',
    text: 'isAgreed ? (winner ?? NO_PATH_MATCH) : ambiguousPath(TWO_READINGS)',
    replacement: 'winner ?? NO_PATH_MATCH',
    breaks: 'the origin that decodes gets another path than the one judged',
  },
  {
    invariant: 'I3',
    name: 'the query is judged too',
    file: 'src/policy/policy.ts',
    text: 'query < 0 ? target : target.slice(0, query)',
    replacement: 'query < 0 ? target : target.slice(query + 1)',
    breaks: 'a query that spells /v1/ earns the credential of /v1/',
  },
  {
    invariant: 'I3',
    name: 'absolute-form leaves as it came',
    file: 'src/proxy/outgoing-head.ts',
    text: '...(target.rewritten ? { target: target.rewritten } : {}),',
    replacement: '',
    breaks: 'the origin gets another target than the origin-form that was judged',
  },
  {
    invariant: 'I3',
    name: 'path parameters are part of the path',
    file: 'src/policy/path-spelling.ts',
    text: ".replace(/;[^/]*/g, '')",
    replacement: '',
    breaks: 'an origin that cuts `;…` reads another path than the one judged',
  },
  {
    invariant: 'I3',
    name: 'other fields may claim the URL',
    file: 'src/proxy/inject.ts',
    text: ' || urlOverrides.some(isReplaced)',
    replacement: '',
    breaks: 'X-Original-URL takes the credential to a path of its choice',
  },
];

const exactlyOnce: readonly Mutation[] = [
  {
    invariant: 'I4',
    name: 'the agent keeps its own field',
    file: 'src/proxy/inject.ts',
    text: 'injection.replaced.some(isReplaced) || ',
    replacement: '',
    breaks: "the origin finds the agent's field beside ours",
  },
  {
    invariant: 'I4',
    name: 'one of several is removed',
    file: 'src/proxy/inject.ts',
    text: 'urlOverrides.some(isReplaced)) drop[i] = 1;',
    replacement: 'urlOverrides.some(isReplaced)) { drop[i] = 1; break; }',
    breaks: 'a second field of the same name survives',
  },
  {
    invariant: 'I4',
    name: 'an underscore is another letter',
    file: 'src/http1/field-name.ts',
    text: 'return byte === UNDERSCORE_BYTE ? HYPHEN_BYTE : byte;',
    replacement: 'return byte;',
    breaks: 'X_Api_Key reaches origins that read it as X-Api-Key',
  },
  {
    invariant: 'I4',
    name: 'Connection passes',
    file: 'src/http1/connection-fields.ts',
    text: 'drop[i] = 1;\n    if (id === Field.connection) {',
    replacement: 'drop[i] = id === Field.connection ? 0 : 1;\n    if (id === Field.connection) {',
    breaks: 'a hop behind us strips the injected field that the agent nominated',
  },
  {
    invariant: 'I4',
    name: 'trailers pass',
    file: 'src/http1/chunk-walker.ts',
    text: 'if (!isCanonical) this.#replaceHead(bytes, past, LAST_CHUNK, emit);',
    replacement: '',
    breaks: 'an origin that merges trailers finds a second field',
  },
  {
    invariant: 'I4',
    name: 'ours is written twice',
    file: 'src/proxy/outgoing-head.ts',
    text: 'append.push(injection.lines);',
    replacement: 'append.push(injection.lines, injection.lines);',
    breaks: 'the field is there twice',
  },
];

const failClosed: readonly Mutation[] = [
  {
    invariant: 'I6',
    name: 'a failed callback injects nothing and passes',
    file: 'src/proxy/inject.ts',
    text: "if (!outcome.ok) return refuse('callback_failed', outcome.reason);",
    replacement: 'if (!outcome.ok) return passages.no_match;',
    breaks: 'the request leaves without its credential',
  },
  {
    invariant: 'I6',
    name: 'failures are remembered',
    file: 'src/callback/resolver.ts',
    text: 'if (!reply.ok) return reply;',
    replacement: 'if (!reply.ok) cache.set(key, reply, 60_000);\n    if (!reply.ok) return reply;',
    breaks: 'one failure refuses requests for a minute',
  },
  {
    invariant: 'I6',
    name: 'bad headers are passed over',
    file: 'src/callback/reply.ts',
    text: 'if (headerNameFault(name) !== undefined) return `the name of header ${position} may not be injected`;',
    replacement: 'if (headerNameFault(name) !== undefined) continue;',
    breaks: 'a half-understood answer is injected in part',
  },
  {
    invariant: 'I6',
    name: 'a missing secret is nothing',
    file: 'src/policy/compile.ts',
    text: 'if (secret === undefined) return `The workspace secret ${part.secret} does not exist; create it first`;',
    replacement: 'if (secret === undefined) continue;',
    breaks: 'a rule is in force without its credential',
  },
  {
    invariant: 'I6',
    name: 'exchanges without a record',
    file: 'src/proxy/exchange-start.ts',
    text: "if (context.recorder.isBlocked) return connection.refuse(refuse('record_sink_blocked'), details);",
    replacement: '',
    breaks: 'credentials are used while nothing can be recorded',
  },
  {
    invariant: 'I6',
    name: 'tunnels without a record',
    file: 'src/proxy/connect.ts',
    text: "if (context.recorder.isBlocked) return connection.refuse(refuse('record_sink_blocked'), details);",
    replacement: '',
    breaks: 'tunnels open while nothing can be recorded',
  },
  {
    invariant: 'I6',
    name: 'a bug is thrown on',
    file: 'src/proxy/client-connection.ts',
    text: 'else if (this.#running) this.#running.onBug(error);',
    replacement: 'else if (this.#running) throw error;',
    breaks: 'one failing decision ends the process for everybody',
  },
];

const rightAnswer: readonly Mutation[] = [
  {
    invariant: 'I12',
    name: 'bytes behind an answer are forgotten',
    file: 'src/proxy/exchange.ts',
    text: 'if (upstream && rest === 0 && ',
    replacement: 'if (upstream && ',
    breaks: 'a connection whose host said too much serves the next request',
  },
  {
    invariant: 'I12',
    name: 'the next request leaves at once',
    file: 'src/proxy/client-connection.ts',
    text: 'if (this.#input.length > 0) setImmediate(() => this.#readNext());',
    replacement: 'if (this.#input.length > 0) this.#readNext();',
    breaks: 'what came together with one answer is read as the next one',
  },
  {
    invariant: 'I12',
    name: 'idle connections may speak',
    file: 'src/proxy/upstream.ts',
    text: 'if (!owner) {\n      this.socket.destroy();\n      return;\n    }',
    replacement: 'if (!owner) return;',
    breaks: 'half of an unasked answer is skipped, the other half answers a request',
  },
  {
    invariant: 'I12',
    name: 'an abandoned exchange gives its connection back',
    file: 'src/proxy/exchange.ts',
    text: 'this.#upstream?.discard();',
    replacement: 'if (this.#upstream) this.#context.upstream.give(this.#upstream);',
    breaks: 'the answer to a client that left goes to the next one',
  },
  {
    invariant: 'I12',
    name: 'answers to HEAD have bodies',
    file: 'src/http1/framing.ts',
    text: " || requestMethod === 'HEAD'",
    replacement: '',
    breaks: 'the next answer is swallowed as a body',
  },
  {
    invariant: 'I12',
    name: 'a cut answer is followed by the next',
    file: 'src/proxy/exchange.ts',
    text: 'if (this.#answer) cut(this.#connection.socket);',
    replacement: 'if (this.#answer) this.#connection.next(true);',
    breaks: 'the next answer completes the one that was cut',
  },
];

export const mutations: readonly Mutation[] = [
  ...destination,
  ...oneToOne,
  ...judgedIsSent,
  ...exactlyOnce,
  ...failClosed,
  ...rightAnswer,
];
