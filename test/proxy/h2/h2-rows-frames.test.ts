// The floods of h2-flood-rows.ts and the frames of h2-frame-rows.ts. Whatever a row does, it is done to the client's own
// connection: another client's goes on being served, by the same process.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pingFrame, PREFACE, settingsFrame } from '../../support/h2-frames.ts';
import { type H2WireClient, refusalOf } from '../../support/h2-wire-client.ts';
import { floodRows } from './h2-flood-rows.ts';
import { behind, type FrameRow, frameRows, pathRule } from './h2-frame-rows.ts';
import { apiRule, secret } from '../data-path.ts';
import { createH2Path, type H2Path } from './h2-path.ts';

/** A burst of resets that is let pass, and what a session may have open at once. */
const MOST_STREAMS = 350;

const all = [...floodRows, ...frameRows];
let path: H2Path;
let bystander: H2WireClient;
beforeAll(async () => {
  path = await createH2Path({
    proxy: { proxyConfig: { rules: [apiRule, pathRule] }, secrets: { TOKEN: secret } },
  });
  bystander = await path.client();
});
afterAll(() => path[Symbol.asyncDispose]());

describe.each([...new Set(all.map(({ attack }) => attack))])('%s', (attack) => {
  it.each(all.filter((row) => row.attack === attack))('$what', async (row) => {
    const before = path.origin.streams.length;
    const recordsBefore = path.proxy.records().length;
    await using client = await path.client();
    for (const piece of row.frames(client)) if (!(await client.send(piece))) break;
    if (row.ends === 'never') await expectGoesOn(client, row);
    else await expectEnd(client, row, recordsBefore);
    expect(await bystander.request(bystander.fields('/bystander'))).toMatchObject({ status: 200 });
    const arrived = path.origin.streams.slice(before).filter(({ path }) => path === '/frames');
    expect(arrived.length).toBeLessThan(MOST_STREAMS);
    // None is left waiting for its rest, and what had no rest does not pass for a whole one.
    const wholes = await Promise.all(arrived.map((stream) => stream.ended()));
    if (row.isHalf) expect(wholes).not.toContain(true);
  });
});

/** Everything that a client may say first, cut where it leaves. */
const opening = (client: H2WireClient): Buffer =>
  Buffer.concat([
    Buffer.from(PREFACE),
    settingsFrame({ max_frame_size: 16_384 }),
    ...behind(client, pingFrame()),
  ]);

describe('T-12', () => {
  it.each([0, 1, 23, 24, 30, 36, 44, 50, 70, 1_000])(
    'a client leaves %i bytes behind its handshake',
    async (cut) => {
      for (const leave of ['end', 'reset'] as const) {
        const client = await path.client({ hasPreface: false });
        await client.send(opening(client).subarray(0, cut));
        client.wire[leave]();
        await client.closed;
      }
      expect(await bystander.request(bystander.fields('/bystander'))).toMatchObject({ status: 200 });
    },
  );
});

async function expectGoesOn(client: H2WireClient, { then }: FrameRow): Promise<void> {
  if (then) {
    const response = await client.response(client.peer.stream(then.stream));
    if (then.reset) expect(response.reset).toBe(then.reset);
    else expect([response.status, refusalOf(response)]).toEqual(then.responded);
  }
  expect(await client.request(client.fields('/alive'))).toMatchObject({ status: 200 });
}

async function expectEnd(client: H2WireClient, { ends, flood }: FrameRow, since: number): Promise<void> {
  await client.closed;
  // A reset of the connection may overtake it.
  const reported = client.peer.goaways.map(({ code }) => code).filter((code) => code !== 'NO_ERROR');
  for (const code of reported) expect(ends).toContain(code);
  for (let index = since; ; index += 1) {
    const { outcome, reason, cause } = await path.proxy.record(index);
    if (outcome !== 'failed') continue;
    if (flood) expect([reason, cause]).toEqual(['client_flood', flood]);
    expect(['client_flood', 'client_protocol_error', 'client_gone']).toContain(reason);
    return;
  }
}
