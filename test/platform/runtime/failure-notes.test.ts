import { expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { RuntimeError } from '../../../src/platform/runtime/contract.ts';
import { createFailureNotes } from '../../../src/platform/runtime/failure-notes.ts';

it('what fails again and again is one line, what fails otherwise another one, and so is that it is over', () => {
  const lines: { readonly level: string; readonly msg: string; readonly box?: string }[] = [];
  const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line)) });
  const notes = createFailureNotes(log);
  for (let count = 0; count < 100; count += 1) {
    notes.failed('a could not be done', new RuntimeError('unavailable', `attempt ${count}`));
    notes.failed('b could not be done', new Error('x'), 'one');
    notes.succeeded('b could not be done', 'other');
  }
  notes.failed('a could not be done', Object.assign(new Error('x'), { code: 'ECONNREFUSED' }));
  notes.failed('a could not be done', new RuntimeError('failed', 'x'));
  for (let count = 0; count < 3; count += 1) notes.succeeded('a could not be done');
  notes.failed('a could not be done', 'a text');
  expect(lines.map(({ msg, box }) => [msg, box])).toEqual([
    ['a could not be done', undefined],
    ['b could not be done', 'one'],
    ['a could not be done', undefined],
    ['a could not be done', undefined],
    ['a could not be done, which is over', undefined],
    ['a could not be done', undefined],
  ]);
});
