// The shape of most rows of stage `callback`: the first call gets a bad response, so that the first request is refused and
// nothing is cached; the second request causes a new call, which gets a good response.
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

/** The first response is accepted and cached: the second request causes no call. */
export function cached(
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

/** A response of the endpoint; its Content-Length is computed. */
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
