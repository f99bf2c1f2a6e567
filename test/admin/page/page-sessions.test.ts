import { describe, expect, it } from 'vitest';
import { IDLE_MS, MAX_SESSIONS, PageSessions, SESSION_MS } from '../../../src/admin/page/page-sessions.ts';

function createSessions() {
  const now = { monotonic: 0, wall: 1_000_000 };
  const sessions = new PageSessions({ monotonic: () => now.monotonic, wall: () => now.wall });
  const wait = (ms: number): void => {
    now.monotonic += ms;
    now.wall += ms;
  };
  return { sessions, now, wait };
}

describe('a session', () => {
  it('has an id and a form token of 256 random bits each', () => {
    const { sessions } = createSessions();
    const ids = Array.from({ length: 3 }, () => sessions.begin(false));
    const tokens = ids.map((id) => sessions.find(id, false)?.formToken);
    expect(new Set([...ids, ...tokens]).size).toBe(6);
    for (const text of [...ids, ...tokens]) expect(text).toMatch(/^[\w-]{43}$/);
  });

  it('is found by its whole id alone, under the name that it began with', () => {
    const { sessions } = createSessions();
    const id = sessions.begin(true);
    expect(sessions.find(id, true)).toBeDefined();
    for (const [text, isTls] of [
      [id, false],
      [id.slice(1), true],
      [`${id} `, true],
      ['', true],
    ] as const)
      expect(sessions.find(text, isTls)).toBeUndefined();
  });

  it('ends 30 minutes after its last use', () => {
    const { sessions, wait } = createSessions();
    const id = sessions.begin(false);
    for (let use = 0; use < 5; use += 1) {
      wait(IDLE_MS - 1);
      expect(sessions.find(id, false), `use ${use}`).toBeDefined();
    }
    const session = sessions.find(id, false);
    wait(IDLE_MS);
    expect(session && sessions.keep(session)).toBe(false);
    expect(sessions.find(id, false)).toBeUndefined();
    expect(session?.ended.aborted).toBe(true);
  });

  it('ends 12 hours after it began, however often it is used', () => {
    const { sessions, wait } = createSessions();
    const id = sessions.begin(false);
    for (let ms = 0; ms + IDLE_MS / 2 < SESSION_MS; ms += IDLE_MS / 2) {
      wait(IDLE_MS / 2);
      expect(sessions.find(id, false), `${ms} ms`).toBeDefined();
    }
    wait(IDLE_MS / 2);
    expect(sessions.find(id, false)).toBeUndefined();
  });

  it.each([
    ['the machine slept, and its monotonic clock with it', 0, IDLE_MS, false],
    ['the clock was set back', IDLE_MS, -10 * SESSION_MS, false],
    ['the clock was set back a moment ago', 1_000, -10 * SESSION_MS, true],
  ])('is judged by the clock that went further: %s', (_, monotonic, wall, isOpen) => {
    const { sessions, now } = createSessions();
    const id = sessions.begin(false);
    now.monotonic += monotonic;
    now.wall += wall;
    expect(sessions.find(id, false) !== undefined).toBe(isOpen);
  });

  it('ends when it is ended, and another one does not', () => {
    const { sessions } = createSessions();
    const [one, other] = [sessions.begin(false), sessions.begin(false)];
    const session = sessions.find(one, false);
    sessions.end(one, false);
    expect([session?.ended.aborted, sessions.find(one, false), sessions.size]).toEqual([true, undefined, 1]);
    expect(sessions.find(other, false)).toBeDefined();
  });
});

it('the seventeenth session ends the one that was not used for longest', () => {
  const { sessions } = createSessions();
  const ids = Array.from({ length: MAX_SESSIONS }, () => sessions.begin(false));
  sessions.find(ids[0] ?? '', false);
  sessions.begin(false);
  expect(sessions.size).toBe(MAX_SESSIONS);
  expect(ids.map((id, at) => (sessions.find(id, false) ? -1 : at)).filter((at) => at >= 0)).toEqual([1]);
});

it('sessions that have expired take no place of others', () => {
  const { sessions, wait } = createSessions();
  for (let at = 0; at < MAX_SESSIONS; at += 1) sessions.begin(false);
  wait(IDLE_MS);
  const id = sessions.begin(false);
  expect([sessions.size, sessions.find(id, false) !== undefined]).toEqual([1, true]);
});
