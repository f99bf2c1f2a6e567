// Compares the expectation of a row of stage `callback` with what was observed. Pure.
import type { CallbackObservation } from './callback-driver.ts';
import { SHARED } from './callback-driver.ts';
import type { CallbackRow } from './callback-script.ts';

export function violations({ script, expect }: CallbackRow, seen: CallbackObservation): readonly string[] {
  const found: string[] = [];
  const differs = (what: string, is: unknown, wanted: unknown): void => {
    if (JSON.stringify(is) !== JSON.stringify(wanted))
      found.push(`${what}: ${brief(is)}, expected ${brief(wanted)}`);
  };
  differs('connections elsewhere', seen.elsewhere, 0);
  differs('dialled outside loopback', seen.outsideLoopback, []);
  differs('traces of a secret', seen.traces, []);
  if ('refusedAt' in expect) {
    const places = seen.applied.ok ? [] : seen.applied.issues.map(({ loc }) => loc.join('.'));
    differs('the paths of the issues', [...new Set(places)], [expect.refusedAt.join('.')]);
    differs('calls', seen.calls.length, 0);
    return found;
  }
  differs('outcomes', seen.outcomes, expect.outcomes);
  differs('calls', seen.calls.length, expect.calls);
  differs('records', seen.records.length, expect.outcomes.length);
  const isServed = (outcome: string): boolean => /^(?:call-\d+|plain|other|served)$/.test(outcome);
  differs('requests at the origin', seen.heads.length, expect.outcomes.filter(isServed).length);
  for (const head of seen.heads) {
    if (head.includes(SHARED)) found.push('the shared secret reached the origin');
    if ((head.match(/^authorization:/gim)?.length ?? 0) > 1) found.push('two credentials reached the origin');
  }
  if (script.entry?.['request_headers'] === undefined)
    for (const head of seen.calls)
      differs('the shared secret', head.match(/^x-shared: .*\r$/gim), [`X-Shared: ${SHARED}\r`]);
  const failed = seen.records.find(({ reason }) => reason === 'callback_failed');
  if (expect.cause !== undefined) differs('the cause', failed?.['cause'], expect.cause);
  if (expect.callBodies) differs('the bodies of the calls', seen.callBodies, expect.callBodies);
  if (expect.injected) differs('injected fields', fieldsOf(seen.heads[0] ?? ''), expect.injected);
  return found;
}

function fieldsOf(head: string): readonly string[] {
  return head
    .split('\r\n')
    .slice(1)
    .filter((line) => line !== '' && !line.startsWith('Host:'));
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length <= 500 ? text : `${text.slice(0, 250)}… ${text.length} …${text.slice(-200)}`;
}
