// I12 for two sandboxes of one sidecar that use the same hosts at once: no credential, callback result, connection, TLS
// session, response or record of one reaches the other. With one sandbox in place of both, each of these is detected.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WireClient } from '../support/wire-client.ts';
import { type CrossingKind, crossingKinds, findCrossings } from './crossings.ts';
import { type BoxName, RULE_HOST, type TwoBoxes, createTwoBoxes } from './two-sandbox-scene.ts';
import { type Traffic, expectAll, runTraffic } from './two-sandbox-traffic.ts';

const SEED = 20_261_123;

/** One request on a connection of its own, which the origin closes after it: true if the origin's TLS session was resumed. */
async function isUpstreamResumed(scene: TwoBoxes, box: BoxName, nonce: string): Promise<boolean> {
  const { port, caPem } = scene.boxes[box];
  const authority = `${RULE_HOST}:${scene.originPort}`;
  await using client = await WireClient.connectThrough(port, authority, { ca: caPem, name: RULE_HOST });
  await client.send(`GET /last/${nonce} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  expect((await client.readResponse()).text).toBe(nonce);
  return scene.handshakes.at(-1) ?? false;
}

describe('I12 two sandboxes of one sidecar', () => {
  let scene: TwoBoxes;
  let traffic: Traffic;
  beforeAll(async () => {
    scene = await createTwoBoxes();
    traffic = await runTraffic(scene, 500, SEED);
  });
  afterAll(async () => scene[Symbol.asyncDispose]());

  it('I12 serve all kinds of traffic at once', () => {
    expectAll(scene, traffic, 500);
  });

  it.each(crossingKinds)('I12 share no %s', (kind) => {
    expect(findCrossings(traffic)[kind]).toEqual([]);
  });
});

describe('I12 the TLS session of an upstream', () => {
  it('I12 is resumed for the sandbox that has it, and for no other', async () => {
    await using scene = await createTwoBoxes();
    expect(await isUpstreamResumed(scene, 'A', 'A-1')).toBe(false);
    expect(await isUpstreamResumed(scene, 'A', 'A-2')).toBe(true);
    expect(await isUpstreamResumed(scene, 'B', 'B-3')).toBe(false);
    expect(await isUpstreamResumed(scene, 'B', 'B-4')).toBe(true);
  });

  it('I12 would be resumed for the clients of both in one sandbox', async () => {
    await using scene = await createTwoBoxes({ isShared: true });
    expect(await isUpstreamResumed(scene, 'A', 'A-1')).toBe(false);
    expect(await isUpstreamResumed(scene, 'B', 'B-2')).toBe(true);
  });
});

describe('I12 what crosses is detected', () => {
  let scene: TwoBoxes;
  let traffic: Traffic;
  beforeAll(async () => {
    scene = await createTwoBoxes({ isShared: true });
    traffic = await runTraffic(scene, 200, SEED);
  });
  afterAll(async () => scene[Symbol.asyncDispose]());

  const shared: readonly CrossingKind[] = [
    'credential',
    'callback result',
    'upstream connection',
    'client session',
    'record',
  ];
  it.each(shared)('I12 with one sandbox for both: %s', (kind) => {
    expect(findCrossings(traffic)[kind]).not.toEqual([]);
  });

  it('I12 in the response to another request, and in an upgraded connection', () => {
    const [first, second] = traffic.received;
    const received = [{ nonce: first?.nonce ?? '', got: second?.nonce ?? '' }];
    const upgraded = new Map([['A-1', 'B-2\n']]);
    expect(findCrossings({ ...traffic, received }).response).toHaveLength(1);
    expect(findCrossings({ ...traffic, upgraded }).upgrade).toEqual(['A-1']);
  });
});
