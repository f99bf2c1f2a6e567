// The rows of the stage `message`, at each of their entry point.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { playMessage } from './message-driver.ts';
import { messageRows } from './message-rows.ts';
import { type MessageScene, createMessageScene, unfinished } from './message-scene.ts';
import { accepted, arrival, both, request, type MessageRow } from './message-script.ts';
import { violations } from './message-verdict.ts';
import { everyNth } from '../../support/run-size.ts';

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
  for (const entryPoint of script.on) {
    const seen = await playMessage(target, script, wanted, entryPoint);
    arrived += seen.arrivals.length;
    begun += seen.arrivals.filter(({ body }) => body === undefined).length;
    found.push(
      ...violations({ expect: wanted }, seen, target.values(entryPoint)).map(
        (text) => `${entryPoint}: ${text}`,
      ),
    );
  }
  return found;
}

describe('message', () => {
  everyNth(
    3,
    messageRows.map((row) => [row.id, row] as const),
    (some, options) =>
      it.each(some)('%s', options, async (_, row) => {
        expect(await play(row)).toEqual([]);
      }),
  );
});

describe('after all message rows', () => {
  it('a bystander gets its own response, injected', async () => {
    const bystander = accepted(arrival('GET /bystander'));
    const script = { on: both, send: request('GET /bystander') };
    expect(await play({ id: 'X-12 bystander', script, expect: bystander })).toEqual([]);
  });

  it('every request at an origin was observed with its row', () => {
    expect(scene.origins.all.flatMap(({ requests }) => requests)).toHaveLength(arrived);
    expect(unfinished(scene.origins)).toHaveLength(begun);
  });
});
