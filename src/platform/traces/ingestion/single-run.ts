// The body of `POST /runs` and `PATCH /runs/{id}`: one run as a JSON object.
import type { Issue } from '../../../base/schema.ts';
import type { RunPart } from '../runs/run-part.ts';
import { DISCARD } from './beginning.ts';
import { CollectedRuns, jsonIssue } from './collected-runs.ts';
import type { ScanHandler } from './json/json-scanner.ts';
import type { RequestMemory } from './request-memory.ts';
import { RunReader } from './run-reader.ts';
import type { FactsContext } from './run-schema.ts';
import { scanBody } from './sliced-body.ts';

type Context = Pick<FactsContext, 'kind' | 'id' | 'now' | 'keptDays'>;

/** Throws InvalidInput, what the body throws, and a DomainError where the disk is full. */
export async function readSingleRun(
  body: AsyncIterable<Uint8Array>,
  memory: RequestMemory,
  context: Context,
): Promise<readonly RunPart[]> {
  const runs = new CollectedRuns();
  const run = await readRun(memory.turn.of(body), { memory, loc: ['body'], issues: runs.issues });
  if (run !== undefined && runs.issues.length === 0)
    runs.add(run, { ...context, loc: ['body'], isPlaced: false });
  const parts = runs.finish();
  await memory.turn.finish();
  return parts;
}

type Reading = {
  readonly memory: RequestMemory;
  readonly loc: FactsContext['loc'];
  readonly issues: Issue[];
};

/** A run that is the whole of a text. What is wrong with it is added to the issues. */
export async function readRun(body: AsyncIterable<Uint8Array>, { memory, loc, issues }: Reading) {
  const reader = new RunReader(memory, loc, issues);
  let isObject = true;
  const handler: ScanHandler = {
    open(depth, name, kind) {
      if (depth > 0) return reader.open(name);
      isObject = kind === 'object';
      return isObject ? undefined : DISCARD;
    },
    close(depth) {
      if (depth > 0) reader.close();
    },
  };
  const error = await scanBody(body, {
    ...{ handler, depth: 1, memory },
    settle: () => reader.settle(),
  });
  if (error !== undefined) issues.push(jsonIssue(loc, error));
  else if (isObject) return reader.run;
  else issues.push({ loc, msg: 'Input must be an object', type: 'dict_type' });
  return undefined;
}
