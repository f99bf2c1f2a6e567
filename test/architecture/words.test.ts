// Refuses words that the project replaced by the field's standard terms, in code, comments, messages and documents.
// Identifiers are split at capitals, underscores and hyphens.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../support/spawned-process.ts';

/** Each word with the term to use instead. */
const REPLACED: Readonly<Record<string, string>> = {
  answer: 'response',
  answered: 'responded',
  answering: 'responding',
  answers: 'responses',
  chore: 'background task',
  chores: 'background tasks',
  door: 'listener, adapter, entry point',
  doors: 'listeners, adapters, entry points',
  fault: 'error, issue',
  faults: 'errors, issues',
  faulty: 'invalid',
  heard: 'received, seen',
  house: 'architecture',
  mend: 'fix',
  mended: 'fixed',
  mends: 'fixes',
  room: 'module, folder, capacity',
  rooms: 'modules, folders',
  stranger: 'unauthenticated or foreign client',
  strangers: 'unauthenticated or foreign clients',
  told: 'reported, shown',
  unanswered: 'without a response',
  visit: 'exchange, connection, walk',
  visited: 'seen',
  visits: 'exchanges, connections',
  wing: 'part',
  wings: 'parts',
};

/** Where a word is the standard term, a name of somebody else, or quoted. */
const EXEMPT: readonly (readonly [path: RegExp, words: readonly string[], reason: string])[] = [
  [/^interop\/traces\//, ['fault', 'faults'], 'fault injection is the standard term'],
  [/^test\/architecture\/words\.test\.ts$/, Object.keys(REPLACED), 'the list itself'],
  [/^(test\/chaos\/|scripts\/chaos)/, ['fault', 'faults'], 'fault injection is the standard term'],
  [/^docs\/development\.md$/, ['faults'], 'fault injection is the standard term'],
];

const files = execFileSync('git', ['ls-files'], { cwd: projectRoot, encoding: 'utf8' })
  .split('\n')
  .filter((path) => /\.(ts|js|mjs|md|py|go|sql|sh)$|^Dockerfile$|^\.ci\/run$|^config\//.test(path));

/** Every replaced word in a text, as `line: word -> term`. */
function findReplaced(text: string, exempt: readonly string[] = []): readonly string[] {
  return text.split('\n').flatMap((line, index) => {
    const words = line
      .split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/)
      .map((word) => word.toLowerCase());
    const found = words.filter((word) => Object.hasOwn(REPLACED, word) && !exempt.includes(word));
    return found.map((word) => `${index + 1}: ${word} -> ${REPLACED[word]}`);
  });
}

describe('the words', () => {
  it('are the standard terms', () => {
    const found = files.flatMap((path) => {
      const exempt = EXEMPT.filter(([pattern]) => pattern.test(path)).flatMap(([, words]) => words);
      const inName = findReplaced(path, exempt);
      const inText = findReplaced(readFileSync(join(projectRoot, path), 'utf8'), exempt);
      return [...inName, ...inText].map((one) => `${path}:${one}`);
    });
    expect(found.join('\n')).toBe('');
  });

  it.each([
    ['a whole word', 'the answer came'],
    ['at the start of an identifier', 'answerOf(x)'],
    ['inside an identifier', 'const lateAnswer = 1'],
    ['before another capital', 'class HTTPAnswer {}'],
    ['in a constant', 'MAX_ANSWER_BYTES'],
    ['in a file name', "from './request-answer.ts'"],
  ])('are seen as %s', (_, text) => expect(findReplaced(text)).toHaveLength(1));

  it.each(['default', 'prefault', 'swing', 'Answerable'])('pass as %s', (text) =>
    expect(findReplaced(text)).toEqual([]),
  );
});
