// What the client programs print: one line for each case, and a count at the end. A case that fails does not end the program.
import { isDeepStrictEqual } from 'node:util';

let passed = 0;
let failed = 0;

export async function test(name, work) {
  try {
    await work();
    passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    const text = String(error?.message ?? error).replaceAll('\n', ' ');
    console.log(`FAILED  ${name}: ${text.slice(0, 400)}`);
  }
}

export function equal(seen, wanted) {
  if (!isDeepStrictEqual(seen, wanted))
    throw new Error(`${JSON.stringify(seen)} is not ${JSON.stringify(wanted)}`);
}

export function ok(value, what) {
  if (!value) throw new Error(what);
}

/** The status in the error of a call that must fail. */
export async function statusOf(work) {
  try {
    await work();
  } catch (error) {
    return error.status ?? Number(/HTTP (\d{3})/.exec(String(error.message))?.[1] ?? Number.NaN);
  }
  throw new Error('the call did not fail');
}

export async function all(iterable) {
  const found = [];
  for await (const one of iterable) found.push(one);
  return found;
}

export function end() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
