// Turns of large bodies, on a clock of the test.
import { expect, it } from 'vitest';
import {
  type BodyTurn,
  createBodyTurns,
} from '../../../../../src/platform/traces/ingestion/turns/body-turn.ts';
import { createFakeClock, settle } from '../../../api/shares/fake-clock.ts';

const LARGE = 2 * 1024 * 1024;

function open(atOnce = 1) {
  const clock = createFakeClock();
  const turns = createBodyTurns(atOnce, clock);
  const states = new Map<BodyTurn, string>();
  return {
    clock,
    /** A piece of the body arrives. */
    async take(turn: BodyTurn, bytes = LARGE): Promise<BodyTurn> {
      states.set(turn, 'waiting');
      Promise.resolve(turn.take(bytes)).then(
        () => states.set(turn, 'reading'),
        (error: { kind: string; retryMs: number }) => states.set(turn, `${error.kind} ${error.retryMs > 0}`),
      );
      await settle();
      return turn;
    },
    of: (organization: string): BodyTurn => turns.open({ organization, key: 'key' }),
    state: (turn: BodyTurn): string | undefined => states.get(turn),
  };
}

it('has a large body wait until one before it is stored, and never a small one', async () => {
  const { of, take, state } = open();
  const [first, second, small] = [await take(of('a')), await take(of('a')), await take(of('a'), 1_000)];
  await first.finish();
  await settle();
  expect([first, second, small].map(state)).toEqual(['reading', 'waiting', 'reading']);
  first.end();
  await settle();
  expect(state(second)).toBe('reading');
});

it('has a body wait once the pieces of it are more than a mebibyte', async () => {
  const { of, take, state } = open();
  await take(of('a'));
  const other = of('a');
  for (const expected of ['reading', 'reading', 'waiting']) {
    await take(other, 400_000);
    expect(state(other)).toBe(expected);
  }
});

it('has a body that announces more than a mebibyte wait before it is read', async () => {
  const { of, take, state } = open();
  const first = await take(of('a'));
  const [announced, small] = [of('a'), of('a')];
  let hasBegun = false;
  const beginning = announced.expect(LARGE).then(() => (hasBegun = true));
  await small.expect(1_000);
  await settle();
  expect([state(first), hasBegun]).toEqual(['reading', false]);
  first.end();
  await beginning;
});

it('leaves a turn for another organization', async () => {
  const { of, take, state } = open(2);
  const ours = [await take(of('a')), await take(of('a')), await take(of('a'))];
  const other = await take(of('b'));
  expect([...ours, other].map(state)).toEqual(['reading', 'reading', 'waiting', 'reading']);
});

it('gives the turn of a client that pauses to the next, and the client has one again later', async () => {
  const { of, take, state, clock } = open();
  const [slow, next] = [await take(of('a')), await take(of('a'))];
  await clock.advance(49);
  await settle();
  expect(state(next)).toBe('waiting');
  await clock.advance(1);
  await settle();
  expect(state(next)).toBe('reading');
  await take(slow);
  expect(state(slow)).toBe('waiting');
  next.end();
  await settle();
  expect(state(slow)).toBe('reading');
});

it('lets others go first after five seconds of one body', async () => {
  const { of, take, state, clock } = open();
  const [long, next] = [await take(of('a')), await take(of('a'))];
  for (let ms = 0; ms <= 5_000; ms += 40) {
    await clock.advance(40);
    await take(long, 1);
  }
  expect([long, next].map(state)).toEqual(['waiting', 'reading']);
});

it('keeps the turn of a body that was read until it is stored, however long that takes', async () => {
  const { of, take, state, clock } = open();
  const [stored, next] = [await take(of('a')), await take(of('a'))];
  await stored.finish();
  await clock.advance(30_000);
  await settle();
  expect(state(next)).toBe('waiting');
});

it('refuses a body that has waited for a minute, and says when to come again', async () => {
  const { of, take, state, clock } = open();
  const [stored, next] = [await take(of('a')), await take(of('a'))];
  await stored.finish();
  await clock.advance(60_000);
  await settle();
  expect(state(next)).toBe('too_many true');
});
