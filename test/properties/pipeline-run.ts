// I2 and I12 over generated pipelines through the whole proxy: many clients at once, each request with a nonce of its own,
// origins that fail in every manner, clients that leave. Whatever happens, a response belongs to the request at its place,
// and no request arrives twice, but for the one that may be sent again (RFC 9110 §9.2.2).
import * as fc from 'fast-check';
import { createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecar, createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';
import {
  FORGED,
  type Manner,
  type PipelineOrigin,
  responseOf,
  createPipelineOrigin,
  manners,
} from './pipeline-origin.ts';

type Asked = { readonly manner: Manner; readonly hasBody: boolean };
type Client = {
  readonly entry: 'tls' | 'plain';
  readonly isPipelined: boolean;
  /** After how many responses it resets its connection. */
  readonly leavesAfter: number | null;
  readonly requests: readonly Asked[];
};
export type PipelineFigures = {
  readonly seed: number;
  readonly requests: number;
  /** Whole responses that reached their clients, and requests that got a refusal or no response. */
  readonly responded: number;
  readonly refused: number;
  readonly lost: number;
  readonly error: string | undefined;
};

const manner: fc.Arbitrary<Manner> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<Manner[]>('prompt', 'late', 'chunked', 'interim') },
  { weight: 1, arbitrary: fc.constantFrom(...manners) },
);
const client: fc.Arbitrary<Client> = fc.record({
  entry: fc.constantFrom('tls', 'plain', 'plain', 'plain'),
  isPipelined: fc.boolean(),
  leavesAfter: fc.oneof({ weight: 7, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(2) }),
  requests: fc.array(fc.record({ manner, hasBody: fc.boolean() }), { minLength: 1, maxLength: 6 }),
});
const crowds: fc.Arbitrary<readonly Client[]> = fc.array(client, { minLength: 2, maxLength: 6 });

type Stage = {
  readonly proxy: TestSidecar;
  readonly origins: Readonly<Record<Client['entry'], PipelineOrigin>>;
  readonly counts: { requests: number; responded: number; refused: number; lost: number };
};

export async function runPipelines(options: {
  readonly crowds: number;
  readonly seed: number;
}): Promise<PipelineFigures> {
  const authority = createTestAuthority();
  const tls = await createPipelineOrigin(authority);
  await using _tls = tls.origin;
  const plain = await createPipelineOrigin(undefined);
  await using _plain = plain.origin;
  const headers = [{ name: 'Authorization', type: 'opaque', value: 'Bearer of the rule' }];
  await using proxy = await createTestSidecar({
    proxyConfig: { rules: [{ name: 'pipelines', match_hosts: ['api.test'], headers }] },
    origins: authority,
    config: { inject_cleartext: [`api.test:${plain.origin.port}`] },
  });
  const counts = { requests: 0, responded: 0, refused: 0, lost: 0 };
  const stage: Stage = { proxy, origins: { tls, plain }, counts };
  const property = fc.asyncProperty(crowds, async (crowd) => {
    await Promise.all(crowd.map((one) => play(stage, one)));
  });
  const checked = await fc.check(property, {
    numRuns: options.crowds,
    seed: options.seed,
    endOnFailure: true,
    unbiased: true,
  });
  const reported = JSON.stringify(checked.counterexample);
  return {
    seed: options.seed,
    ...counts,
    error: checked.failed ? `${String(checked.errorInstance)} in ${reported}` : undefined,
  };
}

let lastNonce = 0;

async function play(stage: Stage, asking: Client): Promise<void> {
  const { entry, requests, isPipelined, leavesAfter } = asking;
  const { origin, arrivals } = stage.origins[entry];
  const authority = `api.test:${origin.port}`;
  const sent = requests.map((one) => ({ ...one, nonce: `n${(lastNonce += 1)}` }));
  const wires = sent.map((one) => wireOf(one, authority, entry));
  stage.counts.requests += sent.length;
  await using wire = await open(stage.proxy, entry, authority);
  if (isPipelined) await wire.send(wires.join('')).catch(() => undefined);
  const seen: Seen[] = [];
  for (const text of wires) {
    if (seen.length === leavesAfter) wire.reset();
    if (!isPipelined) await wire.send(text).catch(() => undefined);
    const response = await readFinal(wire);
    if (!response) break;
    seen.push(response);
  }
  checkTranscript(stage, asking, sent, seen);
  if (wire.transcript.includes(FORGED)) throw new Error('bytes behind a response were relayed');
  for (const { nonce, manner, hasBody } of sent) {
    const mayRepeat = manner === 'silent' && !hasBody;
    if ((arrivals.get(nonce) ?? 0) > (mayRepeat ? 2 : 1)) throw new Error(`${nonce} arrived more than once`);
  }
}

type Seen = { readonly status: number; readonly text: string; readonly isWhole: boolean };

function checkTranscript(
  { counts }: Stage,
  { leavesAfter }: Client,
  sent: readonly (Asked & { readonly nonce: string })[],
  seen: readonly Seen[],
): void {
  for (const [i, { status, text, isWhole }] of seen.entries()) {
    const { nonce = '' } = sent[i] ?? {};
    const own = responseOf(nonce);
    if (status === 200 && !(isWhole ? text === own : own.startsWith(text)))
      throw new Error(`${nonce} got ${text}`);
    if (status !== 200 && status < 500) throw new Error(`${nonce} was refused with ${status}: ${text}`);
    if (status === 200 && isWhole) counts.responded += 1;
    else counts.refused += 1;
  }
  counts.lost += sent.length - seen.length;
  // With calm hosts and patient clients every request gets a response.
  const firstError = sent.findIndex(({ manner }) => !calm.has(manner));
  const calmOnes = firstError === -1 ? sent.length : firstError;
  const whole = seen.filter(({ status, isWhole }) => status === 200 && isWhole).length;
  if (leavesAfter === null && whole < calmOnes)
    throw new Error(`${whole} of ${calmOnes} calm requests got a response`);
}

const calm: ReadonlySet<Manner> = new Set(['prompt', 'late', 'chunked', 'interim']);

async function open(proxy: TestSidecar, entry: Client['entry'], authority: string): Promise<WireClient> {
  return entry === 'plain'
    ? WireClient.connect(proxy.port)
    : WireClient.connectThrough(proxy.port, authority, { ca: proxy.caPem, name: 'api.test' });
}

function wireOf(
  { manner, hasBody, nonce }: Asked & { readonly nonce: string },
  authority: string,
  entry: Client['entry'],
): string {
  const target = `${entry === 'plain' ? `http://${authority}` : ''}/${nonce}/${manner}`;
  const lines = [`${hasBody ? 'POST' : 'GET'} ${target} HTTP/1.1`, `Host: ${authority}`];
  return [...lines, ...(hasBody ? ['Content-Length: 4'] : []), '', hasBody ? 'body' : ''].join('\r\n');
}

/** The next final response; undefined where the connection ended before its head. */
async function readFinal(wire: WireClient): Promise<Seen | undefined> {
  let status = 100;
  try {
    while (status < 200) ({ status } = await wire.readHead());
  } catch {
    return undefined;
  }
  try {
    return { status, text: (await wire.readBody()).content.toString('latin1'), isWhole: true };
  } catch {
    return { status, text: '', isWhole: false };
  }
}
