// The shape that most rows of stage `callback` have: the first call is answered badly, so the first request is refused,
// nothing is kept, and the second request asks again and is served by a good answer.
import type { CallbackExpectation, CallbackRow, CallbackScript, CallbackStep } from './callback-script.ts';

export const GOOD = '{"headers":{"Authorization":"{CREDENTIAL}"}}';

export function failing(
  id: CallbackRow['id'],
  steps: readonly CallbackStep[],
  cause?: string,
  script: Partial<CallbackScript> = {},
): CallbackRow {
  return {
    id,
    script: { responses: [steps], ...script },
    expect: { outcomes: ['failed', 'call-2'], calls: 2, ...(cause === undefined ? {} : { cause }) },
  };
}

/** The first answer is taken, and kept: the second request calls nobody. */
export function taken(
  id: CallbackRow['id'],
  steps: readonly CallbackStep[],
  expect: Partial<Exclude<CallbackExpectation, { refusedAt: unknown }>> = {},
): CallbackRow {
  return {
    id,
    script: { responses: [steps] },
    expect: { outcomes: ['call-1', 'call-1'], calls: 1, ...expect },
  };
}

/** An answer of the endpoint; its length is counted unless a field says otherwise. */
export function reply(status: string, fields: readonly string[], body: string): string {
  return [`HTTP/1.1 ${status}`, ...fields, 'Content-Length: {LENGTH}', '', body].join('\r\n');
}

export function refusedDocument(
  id: CallbackRow['id'],
  entry: Readonly<Record<string, unknown>>,
  ...at: readonly (string | number)[]
): CallbackRow {
  return { id, script: { entry }, expect: { refusedAt: ['callbacks', 0, ...at] } };
}
