// The rows of the stage `message`, at each of their doors.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { playMessage } from './message-driver.ts';
import { messageRows } from './message-rows.ts';
import { type MessageScene, createMessageScene, unfinished } from './message-scene.ts';
import { accepted, arrival, both, request, type MessageRow } from './message-script.ts';
import { violations } from './message-verdict.ts';

let scene: MessageScene;
let begun = 0;
let arrived = 0;

beforeAll(async () => {
  scene = await createMessageScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

async function play({ script, expect: wanted }: MessageRow): Promise<readonly string[]> {
  const target = await scene.target(script.policy);
  const found: string[] = [];
  for (const entry of script.on) {
    const seen = await playMessage(target, script, wanted, entry);
    arrived += seen.arrivals.length;
    begun += seen.arrivals.filter(({ body }) => body === undefined).length;
    found.push(
      ...violations({ expect: wanted }, seen, target.values(entry)).map((text) => `${entry}: ${text}`),
    );
  }
  return found;
}

describe('message', () => {
  it.each(messageRows.map((row) => [row.id, row] as const))('%s', async (_, row) => {
    expect(await play(row)).toEqual([]);
  });
});

describe('after all of them', () => {
  it('a bystander gets its own answer, injected', async () => {
    const bystander = accepted(arrival('GET /bystander'));
    const script = { on: both, send: request('GET /bystander') };
    expect(await play({ id: 'X-12 bystander', script, expect: bystander })).toEqual([]);
  });

  it('nothing has come to any origin that was not seen with its row', () => {
    expect(scene.origins.all.flatMap(({ requests }) => requests)).toHaveLength(arrived);
    expect(unfinished(scene.origins)).toHaveLength(begun);
  });
});
