// Bodies with runs as the documentation describes them. They are read as they stream, by the same schema of a run without its payloads.
import { z } from '../../../base/schema.ts';
import { PAYLOAD_FIELDS } from './field-writer.ts';
import { runMembers } from './run-schema.ts';

const payload = z.unknown().describe('JSON of any kind, kept as it was sent');

const sent = runMembers.extend(
  Object.fromEntries(PAYLOAD_FIELDS.map((field) => [field, payload.optional()] as const)),
);

/** Of `PATCH /runs/{run_id}`: the path has its id. */
export const changedRun = sent;

/** Of `POST /runs`. */
export const postedRun = required(['id']);

const runs = z.array(required(['id', 'trace_id', 'dotted_order'])).nullish();

/** Of `POST /runs/batch`. */
export const runBatch = z.object({ post: runs, patch: runs });

/** Neither absent nor null. */
function required(names: readonly (keyof typeof runMembers.shape)[]) {
  const { shape } = runMembers;
  return sent.extend(Object.fromEntries(names.map((name) => [name, shape[name].unwrap().unwrap()] as const)));
}
