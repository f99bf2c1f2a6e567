// Every question of the benchmark in the order in which they are asked, and which of them the shorter runs ask, with their
// shares of the time.
import type { Level, Question } from '../support/question.ts';
import { UsageError } from '../support/usage-error.ts';
import { bodies } from './bodies.ts';
import { callbacks } from './callbacks.ts';
import { idleTunnels } from './idle-tunnels.ts';
import { keepAliveH2 } from './keep-alive-h2.ts';
import { keepAlive } from './keep-alive.ts';
import { memory } from './memory.ts';
import { newTunnel } from './new-tunnel.ts';
import { rules } from './rules.ts';
import { sandboxes } from './sandboxes.ts';
import { shortLived } from './short-lived.ts';
import { start } from './start.ts';

export const questions: readonly Question[] = [
  start,
  keepAlive,
  newTunnel,
  keepAliveH2,
  shortLived,
  bodies,
  callbacks,
  rules,
  idleTunnels,
  sandboxes,
  memory,
];

/** The shares of the time in the shorter runs; a question without one is asked in full runs only. */
const shares: Readonly<Record<string, number>> = {
  start: 0.08,
  'keep-alive': 0.56,
  'new-tunnel': 0.17,
  'keep-alive-h2': 0.19,
};
const OTHER_SHARE = 0.15;

export function shareOf({ name }: Question): number {
  return shares[name] ?? OTHER_SHARE;
}

export function questionsOf(level: Level, only: readonly string[] | undefined): readonly Question[] {
  const unknown = only?.filter((name) => questions.every((each) => each.name !== name)) ?? [];
  if (unknown.length > 0) {
    const names = questions.map(({ name }) => name).join(', ');
    throw new UsageError(`--only: there is no question ${unknown.join(', ')}; the questions are ${names}`);
  }
  return questions.filter(
    ({ name }) => only?.includes(name) ?? (level === 'full' || shares[name] !== undefined),
  );
}
