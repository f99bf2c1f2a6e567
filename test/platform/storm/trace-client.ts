// One client of a storm of traces: it sends the parts of its runs to whichever process listens, in any order and by any way, some of
// them twice or to both processes at once, and notes what became of each request.
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../../http1/mutation.ts';
import type { Outcome, SentRequest } from './trace-checks.ts';
import { type Body, createTrace, type Part, toBody } from './trace-runs.ts';
import type { Target } from './storm-client.ts';

export type TraceScope = {
  readonly processes: readonly Target[];
  readonly key: string;
  readonly random: Random;
  readonly requests: SentRequest[];
  /** Responses that nothing explains. */
  readonly errors: string[];
  /** Called for every response, with the index of the process that sent it. */
  onResponse(index: number): void;
};

const MOST_PARTS = 6;
/** Percentages of requests. */
const [RESENT, TO_BOTH, GIVEN_UP] = [15, 15, 25];
/** The storm has failed then, and parts that are never accepted would keep it from its end. */
const MAX_ERRORS = 20;
/** Where nobody listens at the moment. */
const RETRY_MS = 50;

/** Sends until `signal` aborts, and then what is left; resolves after its last response. */
export async function runTraceClient(scope: TraceScope, project: string, signal: AbortSignal): Promise<void> {
  const { random } = scope;
  const waiting: Part[] = [];
  let last: readonly Part[] = [];
  while ((!signal.aborted || waiting.length > 0) && scope.errors.length < MAX_ERRORS) {
    if (!signal.aborted && waiting.length < 2 * MOST_PARTS) addTrace(waiting, project, random);
    const isAgain = last.length > 0 && random(100) < RESENT;
    last = isAgain ? last : waiting.splice(0, 1 + random(MOST_PARTS));
    const outcomes = await sendSomewhere(scope, last);
    if (outcomes.includes('accepted')) continue;
    // As clients do whose tries are used up, they leave some for good.
    if (!signal.aborted && random(100) < GIVEN_UP) continue;
    waiting.push(...last.filter((part) => !waiting.includes(part)));
    await pause(RETRY_MS);
  }
}

/** The parts of its runs, also with a PATCH before its POST. */
function addTrace(waiting: Part[], project: string, random: Random): void {
  for (const run of createTrace(project, Date.now(), random)) {
    const kinds = random(3) === 0 ? (['patch', 'post'] as const) : (['post', 'patch'] as const);
    for (const kind of kinds) waiting.splice(random(waiting.length + 1), 0, { run, kind });
  }
}

async function sendSomewhere(scope: TraceScope, parts: readonly Part[]): Promise<readonly Outcome[]> {
  const { processes, random } = scope;
  const body = toBody(parts, random);
  const all = [...processes.keys()];
  const targets = random(100) < TO_BOTH ? all : [random(processes.length)];
  return Promise.all(
    targets.map(async (index) => {
      const outcome = await send(scope, body, index);
      scope.requests.push({ parts, outcome, attached: body.attached });
      return outcome;
    }),
  );
}

async function send(
  scope: TraceScope,
  { method, path, headers, bytes }: Body,
  index: number,
): Promise<Outcome> {
  const port = await scope.processes[index]?.port();
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      ...{ method, body: bytes },
      headers: { ...headers, 'X-Api-Key': scope.key },
    });
    const text = await response.text();
    scope.onResponse(index);
    if (response.status === 202) return 'accepted';
    if (response.status === 429) return 'refused';
    if (response.status !== 503)
      scope.errors.push(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`);
    return 'unknown';
  } catch {
    // Killed, or not yet there.
    return 'unknown';
  }
}
