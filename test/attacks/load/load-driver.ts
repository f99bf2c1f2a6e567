// Plays a row of the stage `load`: all its clients concurrently against one sidecar, with a bystander of another sandbox. Checks
// the requests at the hosts, the records, and that no connection stays open.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { vi } from 'vitest';
import { INJECTED, type Scene, SECRET, createScene, tracesOf } from '../../invariants/credential-scene.ts';
import { headerValues } from '../../support/message-reader.ts';
import { type RecordingOrigin, createOrigin } from '../../support/recording-origin.ts';
import { type BystanderReport, bystanderSandbox, createBystander, isBystanders } from './load-bystander.ts';
import { type Place, type Played, playClient } from './load-client.ts';
import { respondByPath } from './load-origin.ts';
import { callbacksAt, reply, ruleHosts, rules } from './load-policy.ts';
import type { LoadExpectation, LoadScript } from './load-script.ts';

/** Ten times the duration on a processor shared with eight other processes. */
const MAX_WAIT_MS = 5_000;
const WITHIN_MS = 10_000;

const tight = {
  timeouts: {
    head_ms: 500,
    // All clients of a row must have connected before the first of them ends.
    sniff_ms: 2_000,
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
  readonly bystander: BystanderReport;
  /** The longest delay of the event loop. */
  readonly loopMs: number;
  /** The number of open connections of the attacked sandbox. */
  readonly left: number;
  /** Forms of the secret that a client or the host without a rule received. */
  readonly leaks: readonly string[];
  /** Requests at the host with rules whose Authorization is not exactly the credential. */
  readonly misinjected: readonly string[];
  readonly unexpectedErrors: readonly unknown[];
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
  const blind = made.use(await createOrigin({ respond: respondByPath }));
  const callback = made.use(await createOrigin({ respond: reply }));
  const scene = made.use(
    await createScene({
      names: ruleHosts,
      rules,
      resolve: { 'lost.test': new Error('ENOTFOUND') },
      callbacks: callbacksAt(`http://127.0.0.1:${callback.port}`),
      respond: respondByPath,
      config: () => (at === 'tight' ? tight : usual),
      sidecar: { admin: true },
    }),
  );
  await scene.proxy.admin('POST', '/v1/sandboxes', bystanderSandbox);
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
  const arrivals = (): readonly Arrived[] => [
    ...origin.requests.slice(before.api),
    ...blind.requests.slice(before.blind),
  ];
  const arrived = (n: number): Promise<unknown> =>
    until(() => arrivals().some(({ target }) => target.endsWith(`/n${n}`)));
  const target = { port: proxy.port, caPem: proxy.caPem, authority: scene.at(), origin };
  // With a blocked sink no client is served: then the bystander runs after the row.
  const isBlocked = script.steps.some((step) => 'sink' in step);
  const bystander = isBlocked ? undefined : await createBystander(target);
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const clients = await Promise.all(
    Array.from({ length: script.clients }, (_, n) => playClient(script, n, { ...place, arrived })),
  ).finally(() => proxy.blockSink(false));
  const recordsOf = (): Record<string, number> => tally(proxy.lines.slice(before.lines).flatMap(recordOf));
  await until(() => sum(recordsOf()) >= sum(expected.records)).catch(() => undefined);
  for (const { client } of clients) await client[Symbol.asyncDispose]();
  delay.disable();
  const bystanderReport = await (bystander ?? (await createBystander(target))).stop();
  const left = await connectionsLeft(scene);
  return {
    responses: tally(clients.map((one) => one.responses().join(', ') || 'nothing')),
    arrived: tally(
      arrivals()
        .filter((request) => !isBystanders(request))
        .map(arrivalOf),
    ),
    records: recordsOf(),
    bystander: bystanderReport,
    loopMs: delay.max / 1e6,
    left,
    leaks: tracesOf(SECRET, [
      ...clients.map(transcriptOf),
      ...blind.requests.slice(before.blind).map(({ head }) => head),
    ]),
    misinjected: origin.requests.slice(before.api).flatMap(misinjectionOf),
    unexpectedErrors: proxy.lines
      .slice(before.lines)
      .filter(({ level }) => level === 'error' || level === 'fatal'),
  };
}

function transcriptOf({ client }: Played): string {
  return client.transcript;
}

type Arrived = RecordingOrigin['requests'][number];

function arrivalOf({ method, target, body }: Arrived): string {
  return `${method} ${target.replace(/\/n\d+$/, '')} ${body ? body.length : 'cut'}`;
}

/** The bystander and hosts with callbacks have other credentials. */
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

/** Ended connections are removed shortly afterwards. */
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
  if (seen.left > 0) found.push(`${seen.left} connections stay open`);
  found.push(...seen.leaks.map((form) => `the secret leaked: ${form}`));
  found.push(...seen.misinjected.map((what) => `not injected exactly once: ${what}`));
  found.push(...seen.unexpectedErrors.map((error) => `an unexpected error: ${JSON.stringify(error)}`));
  return found;
}
