// Plays a row of the stage `load`: all its clients at once against one sidecar, with a bystander of another sandbox beside
// them, and sees what came to the hosts, what was recorded, and that nothing stays.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { vi } from 'vitest';
import { INJECTED, type Scene, SECRET, createScene, tracesOf } from '../../invariants/credential-scene.ts';
import { headerValues } from '../../support/message-reader.ts';
import { type RecordingOrigin, createOrigin } from '../../support/recording-origin.ts';
import { type Standing, bystandersBox, createBystander, isBystanders } from './load-bystander.ts';
import { type Place, type Played, playClient } from './load-client.ts';
import { respondAsAsked } from './load-origin.ts';
import { callbacksAt, reply, ruleHosts, rules } from './load-policy.ts';
import type { LoadExpectation, LoadScript } from './load-script.ts';

/** Ten times what it takes where eight other processes want the processor. */
const MAX_WAIT_MS = 5_000;
const WITHIN_MS = 10_000;

const tight = {
  timeouts: {
    head_ms: 500,
    sniff_ms: 500,
    handshake_ms: 600,
    client_idle_ms: 800,
    tunnel_idle_ms: 500,
    half_closed_ms: 200,
    response_idle_ms: 2_000,
    continue_ms: 100,
    drain_ms: 1_000,
  },
  limits: { max_connections: 24, max_waiting: 12 },
};
const usual = { timeouts: { drain_ms: 1_000 } };

export type Observation = Required<LoadExpectation> & {
  readonly bystander: Standing;
  /** The longest time in which nothing else could run. */
  readonly loopMs: number;
  /** Connections of the attacked sandbox that are still there. */
  readonly left: number;
  /** Forms of the secret that a client, or the host without a rule, got. */
  readonly strayed: readonly string[];
  /** What the host with rules got as Authorization, other than the credential once. */
  readonly misinjected: readonly string[];
  readonly bugs: readonly unknown[];
};

export type LoadStage = AsyncDisposable & {
  play(script: LoadScript, expected: LoadExpectation): Promise<Observation>;
};
type Host = {
  readonly scene: Scene;
  readonly place: Omit<Place, 'arrived'>;
  readonly blind: RecordingOrigin;
};

export async function createLoadStage(at: 'tight' | 'usual'): Promise<LoadStage> {
  await using made = new AsyncDisposableStack();
  const blind = made.use(await createOrigin({ respond: respondAsAsked }));
  const callback = made.use(await createOrigin({ respond: reply }));
  const scene = made.use(
    await createScene({
      names: ruleHosts,
      rules,
      resolve: { 'lost.test': new Error('ENOTFOUND') },
      callbacks: callbacksAt(`http://127.0.0.1:${callback.port}`),
      respond: respondAsAsked,
      config: () => (at === 'tight' ? tight : usual),
      sidecar: { admin: true },
    }),
  );
  await scene.proxy.admin('POST', '/v1/sandboxes', bystandersBox);
  const host = { scene, blind, place: placeOf(scene, blind) };
  const stack = made.move();
  return {
    play: (script, expected) => play(host, script, expected),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function placeOf(scene: Scene, blind: RecordingOrigin): Host['place'] {
  return {
    port: scene.proxy.port,
    caPem: scene.proxy.caPem,
    hostPort: scene.origin.port,
    blockSink: () => scene.proxy.blockSink(true),
    names: { API: scene.at(), BLIND: `blind.test:${blind.port}`, CLEAR: `127.0.0.1:${blind.port}` },
  };
}

function until(isThere: () => boolean | Promise<boolean>): Promise<unknown> {
  return vi.waitUntil(isThere, { interval: 2, timeout: WITHIN_MS });
}

async function play(
  { scene, blind, place }: Host,
  script: LoadScript,
  expected: LoadExpectation,
): Promise<Observation> {
  const { proxy, origin } = scene;
  const before = { lines: proxy.lines.length, api: origin.requests.length, blind: blind.requests.length };
  const came = (): readonly Arrived[] => [
    ...origin.requests.slice(before.api),
    ...blind.requests.slice(before.blind),
  ];
  const arrived = (n: number): Promise<unknown> =>
    until(() => came().some(({ target }) => target.endsWith(`/n${n}`)));
  const way = { port: proxy.port, caPem: proxy.caPem, authority: scene.at(), origin };
  // Without a sink nobody is served: then he comes behind them.
  const isBlocked = script.steps.some((step) => 'sink' in step);
  const beside = isBlocked ? undefined : await createBystander(way);
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const clients = await Promise.all(
    Array.from({ length: script.clients }, (_, n) => playClient(script, n, { ...place, arrived })),
  ).finally(() => proxy.blockSink(false));
  const recordsOf = (): Record<string, number> => tally(proxy.lines.slice(before.lines).flatMap(recordOf));
  await until(() => sum(recordsOf()) >= sum(expected.records)).catch(() => undefined);
  for (const { client } of clients) await client[Symbol.asyncDispose]();
  delay.disable();
  const standing = await (beside ?? (await createBystander(way))).stop();
  const left = await connectionsLeft(scene);
  return {
    responses: tally(clients.map((one) => one.responses().join(', ') || 'nothing')),
    arrived: tally(
      came()
        .filter((request) => !isBystanders(request))
        .map(arrivalOf),
    ),
    records: recordsOf(),
    bystander: standing,
    loopMs: delay.max / 1e6,
    left,
    strayed: tracesOf(SECRET, [
      ...clients.map(transcriptOf),
      ...blind.requests.slice(before.blind).map(({ head }) => head),
    ]),
    misinjected: origin.requests.slice(before.api).flatMap(misinjectionOf),
    bugs: proxy.lines.slice(before.lines).filter(({ level }) => level === 'error' || level === 'fatal'),
  };
}

function transcriptOf({ client }: Played): string {
  return client.transcript;
}

type Arrived = RecordingOrigin['requests'][number];

function arrivalOf({ method, target, body }: Arrived): string {
  return `${method} ${target.replace(/\/n\d+$/, '')} ${body ? body.length : 'cut'}`;
}

/** The bystander's and those of callbacks have others. */
function misinjectionOf(request: Arrived): readonly string[] {
  if (isBystanders(request) || /^(?:called|deep|keys)\.test/.test(request.serverName ?? '')) return [];
  const values = headerValues(request, 'authorization');
  const wanted = request.serverName === 'narrow.test' ? '' : INJECTED;
  return values.join() === wanted ? [] : [`${request.target}: ${values.length} values`];
}

function recordOf({ msg, sandbox, outcome, reason }: Scene['proxy']['lines'][number]): readonly string[] {
  if (msg !== 'exchange' || sandbox !== 'default') return [];
  return [reason === undefined ? String(outcome) : `${String(outcome)} ${String(reason)}`];
}

/** What is over goes in a moment. */
async function connectionsLeft({ proxy }: Scene): Promise<number> {
  let left = 0;
  const isGone = async (): Promise<boolean> => {
    const { body } = await proxy.admin('GET', '/v1/sandboxes/default');
    left = Number(body['connections']);
    return left === 0;
  };
  await until(isGone).catch(() => undefined);
  return left;
}

function tally(all: readonly string[]): Record<string, number> {
  const counted: Record<string, number> = {};
  for (const one of all.toSorted()) counted[one] = (counted[one] ?? 0) + 1;
  return counted;
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

export function violations(expected: LoadExpectation, seen: Observation): readonly string[] {
  const found: string[] = [];
  const same = (
    what: string,
    got: Readonly<Record<string, number>>,
    wanted: Readonly<Record<string, number>>,
  ): void => {
    const sorted = (counts: Readonly<Record<string, number>>): string =>
      JSON.stringify(Object.entries(counts).toSorted(([a], [b]) => a.localeCompare(b)));
    if (sorted(got) !== sorted(wanted)) found.push(`${what}: ${sorted(got)} instead of ${sorted(wanted)}`);
  };
  if (expected.responses) same('responses', seen.responses, expected.responses);
  same('arrived', seen.arrived, expected.arrived ?? {});
  same('records', seen.records, expected.records);
  found.push(...seen.bystander.errors.map((error) => `the bystander got ${error}`));
  for (const [what, ms] of [
    ['the bystander', seen.bystander.slowestMs],
    ['a newcomer', seen.bystander.newcomerMs],
    ['the event loop', seen.loopMs],
  ] as const)
    if (ms > MAX_WAIT_MS) found.push(`${what} waited ${ms.toFixed(0)} ms`);
  if (seen.left > 0) found.push(`${seen.left} connections stay`);
  found.push(...seen.strayed.map((form) => `the secret strayed: ${form}`));
  found.push(...seen.misinjected.map((what) => `not injected once: ${what}`));
  found.push(...seen.bugs.map((bug) => `a bug: ${JSON.stringify(bug)}`));
  return found;
}
