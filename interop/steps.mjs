// What the client programs report to the test: one line of JSON for each step. What they ask for, the test sends to standard input.
import { createInterface } from 'node:readline';

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export const [endpoint, key, viewerKey, origin] = process.argv.slice(2);

export function report(step, value) {
  process.stdout.write(`${JSON.stringify({ step, value })}\n`);
}

/** Asks the test to do something, and waits until it has. */
export async function askFor(what) {
  report('ask', what);
  const { done, value } = await input.next();
  if (done) throw new Error('the test has gone');
  return JSON.parse(value);
}

/** The class of the error, and the fields that programs read. */
export async function errorOf(work) {
  try {
    await work();
    return 'no error';
  } catch (error) {
    const { field, quotaType, errorType } = error;
    const name = error.name === 'Error' ? error.constructor.name : error.name;
    return [name.replace(/^LangSmith/, ''), field ?? quotaType ?? errorType ?? null];
  }
}
