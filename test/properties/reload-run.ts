// I10 over generated schedules: documents are put by the admin API while clients ask. Each document marks all that it
// injects with its own number, so that a request shows which one was applied to it: one, whole, and one that was active
// between its first byte and its response.
import * as fc from 'fast-check';
import { headerValues } from '../support/message-reader.ts';
import { type RecordingOrigin, createOrigin, jsonResponse } from '../support/recording-origin.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecar, createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

type Step =
  /** `none` has no rule for the host. */
  | { readonly do: 'put'; readonly injects: boolean }
  | { readonly do: 'ask'; readonly client: number; readonly hasBody: boolean; readonly turns: number }
  | { readonly do: 'rest'; readonly turns: number }
  | { readonly do: 'settle' };
export type ReloadFigures = {
  readonly seed: number;
  readonly documents: number;
  readonly marked: number;
  readonly unmarked: number;
  /** Refused because the rules changed while they waited. */
  readonly givenUp: number;
  /** Decided by a document that was not yet acknowledged when the request was sent. */
  readonly overtaken: number;
  readonly error: string | undefined;
};

const CLIENTS = 4;
const turns = fc.nat(6);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('put'), injects: fc.constantFrom(true, true, true, false) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('ask'),
      client: fc.nat(CLIENTS - 1),
      hasBody: fc.boolean(),
      turns,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rest'), turns }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('settle') }) },
);
const schedules: fc.Arbitrary<readonly Step[]> = fc.array(step, { minLength: 10, maxLength: 40 });

type Marker = { sent: number; responded: number; readonly injects: boolean[] };
type Stage = {
  readonly proxy: TestSidecar;
  /** Two in tunnels with TLS, two on the proxy port. */
  readonly clients: readonly {
    readonly wire: WireClient;
    readonly authority: string;
    readonly isPlain: boolean;
  }[];
  readonly marker: Marker;
  readonly counts: { marked: number; unmarked: number; givenUp: number; overtaken: number };
};

export async function runReloads(options: {
  readonly schedules: number;
  readonly seed: number;
}): Promise<ReloadFigures> {
  const authority = createTestAuthority();
  await using tls = await createMarkOrigin({ authority, names: ['api.test'] });
  await using plain = await createMarkOrigin();
  await using proxy = await createTestSidecar({
    proxyConfig: documentOf(0, true),
    origins: authority,
    admin: true,
    config: { inject_cleartext: [`api.test:${plain.port}`] },
  });
  await using stack = new AsyncDisposableStack();
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async (_, i) => {
      const isPlain = i % 2 === 1;
      const at = `api.test:${isPlain ? plain.port : tls.port}`;
      const wire = isPlain
        ? await WireClient.connect(proxy.port)
        : await WireClient.connectThrough(proxy.port, at, { ca: proxy.caPem, name: 'api.test' });
      return { wire: stack.use(wire), authority: at, isPlain };
    }),
  );
  const counts = { marked: 0, unmarked: 0, givenUp: 0, overtaken: 0 };
  const stage: Stage = { proxy, clients, marker: { sent: 0, responded: 0, injects: [true] }, counts };
  const property = fc.asyncProperty(schedules, (steps) => play(stage, steps));
  const { failed, errorInstance, counterexample } = await fc.check(property, {
    numRuns: options.schedules,
    seed: options.seed,
    endOnFailure: true,
    unbiased: true,
  });
  const error = failed ? `${String(errorInstance)} in ${JSON.stringify(counterexample)}` : undefined;
  return { seed: options.seed, documents: stage.marker.sent, ...counts, error };
}

/** Responds with the marks that arrived. */
function createMarkOrigin(
  tls?: NonNullable<Parameters<typeof createOrigin>[0]>['tls'],
): Promise<RecordingOrigin> {
  return createOrigin({
    ...(tls && { tls }),
    async respond({ request, readBody, send }) {
      await readBody();
      const marks = request.headers.filter(([name]) => /^x-(?:a|b|only-\d+)$/i.test(name));
      await send(jsonResponse(marks.map(([name, value]) => `${name}: ${value}`)));
    },
  });
}

function documentOf(n: number, injects: boolean): unknown {
  const headers = [
    { name: 'X-A', type: 'plaintext', value: `a-${n}` },
    { name: `X-Only-${n}`, type: 'plaintext', value: `only-${n}` },
    { name: 'X-B', type: 'opaque', value: `b-${n}` },
  ];
  return { rules: [{ name: `rule-${n}`, match_hosts: [injects ? 'api.test' : 'other.test'], headers }] };
}

/** Every client and the operator do one thing at a time, and wait for the others only where a step says so. */
async function play(stage: Stage, steps: readonly Step[]): Promise<void> {
  const chains: Promise<void>[] = Array.from({ length: CLIENTS + 1 }, () => Promise.resolve());
  const then = (i: number, act: () => Promise<void>): void => {
    chains[i] = (chains[i] ?? Promise.resolve()).then(act);
  };
  for (const one of steps) {
    if (one.do === 'put') then(CLIENTS, () => put(stage, one.injects));
    else if (one.do === 'ask') then(one.client, () => ask(stage, one));
    else if (one.do === 'rest') await pass(one.turns);
    else await Promise.all(chains);
  }
  await Promise.all(chains);
}

async function put({ proxy, marker }: Stage, injects: boolean): Promise<void> {
  marker.sent += 1;
  const n = marker.sent;
  marker.injects[n] = injects;
  const send = (): ReturnType<typeof proxy.admin> =>
    proxy.admin('PUT', '/v1/proxy_config', documentOf(n, injects));
  let { status, text } = await send();
  // On a quick machine there are more writes than may be in a second: nothing was changed, and the request is sent again.
  while (status === 429) ({ status, text } = await send());
  if (status !== 200) throw new Error(`document ${n} got ${status}: ${text}`);
  marker.responded = n;
}

async function ask(
  { clients, marker, counts }: Stage,
  { client, hasBody, turns: rest }: Step & { readonly do: 'ask' },
): Promise<void> {
  const asking = clients[client];
  if (!asking) throw new Error('a client that is not there');
  const { wire, authority, isPlain } = asking;
  const first = marker.responded;
  const target = isPlain ? `http://${authority}/` : '/';
  const lines = [`${hasBody ? 'POST' : 'GET'} ${target} HTTP/1.1`, `Host: ${authority}`, 'X-A: of the agent'];
  await wire.send([...lines, ...(hasBody ? ['Content-Length: 8'] : []), '', ''].join('\r\n'));
  // In two pieces: the document may change between them.
  for (const piece of hasBody ? ['half', 'half'] : []) {
    await pass(rest);
    await wire.send(piece);
  }
  const { head, text } = await wire.readResponse();
  if (headerValues(head, 'x-sallyport-error')[0] === 'rules_changed') {
    counts.givenUp += 1;
    return;
  }
  if (head.status !== 200) throw new Error(`the response is ${head.status}: ${text}`);
  const by = decidedBy(JSON.parse(text) as readonly string[], marker, first);
  if (by > first) counts.overtaken += 1;
  if (marker.injects[by] === true) counts.marked += 1;
  else counts.unmarked += 1;
}

/** The number of the one document that injects just this, among those that were active meanwhile; or it throws. */
function decidedBy(marks: readonly string[], { injects, sent }: Marker, first: number): number {
  for (let n = first; n <= sent; n += 1) {
    const own =
      injects[n] === true ? [`X-A: a-${n}`, `X-Only-${n}: only-${n}`, `X-B: b-${n}`] : ['X-A: of the agent'];
    if (own.join('|') === marks.join('|')) return n;
  }
  throw new Error(`${marks.join(', ')} is of no document from ${first} to ${sent}`);
}

async function pass(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
