// The parameters of the checkpoint calls of a worker, which runs code of the deployment: each is checked before it becomes SQL.
import type { ServerCalls } from '../../../agent-worker/protocol/calls.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { isStorable } from '../../../base/json/storable-text.ts';
import { parseWith, z } from '../../../base/schema.ts';

/** Parts of a key: together they must fit into an index row, which has at most 2704 bytes. */
const name = (maxBytes: number) =>
  z.string().refine((text) => isStorable(text) && Buffer.byteLength(text) <= maxBytes, {
    message: `Input must have at most ${maxBytes} bytes in UTF-8, without U+0000`,
  });
const thread_id = z.guid();
const checkpoint_ns = name(1_500);
const checkpoint_id = name(200);
const channel = name(500);
const place = { thread_id, checkpoint_ns, checkpoint_id };
const json = z.record(z.string(), z.unknown());

const typed = z
  .object({ type: name(200), text: z.string().optional(), base64: z.string().optional() })
  .refine(({ text, base64 }) => (text === undefined) !== (base64 === undefined), {
    message: 'A value has either text or base64',
  });

const put = {
  ...{ checkpoint_ns, checkpoint_id },
  parent_checkpoint_id: checkpoint_id.optional(),
  ...{ checkpoint: typed, metadata: typed, searched_metadata: json },
  versions: z.record(channel, name(200)),
  values: z.array(z.object({ channel, version: name(200), value: typed })),
};
const putWrites = {
  ...{ checkpoint_ns, checkpoint_id },
  task_id: name(200),
  writes: z.array(z.object({ idx: z.int32(), channel, value: typed })),
};

const SCHEMAS = {
  'checkpoint.get': z.object({ ...place, checkpoint_id: checkpoint_id.optional() }),
  'checkpoint.list': z.object({
    thread_id,
    checkpoint_ns: checkpoint_ns.optional(),
    checkpoint_id: checkpoint_id.optional(),
    before: checkpoint_id.optional(),
    limit: z.int().min(0).optional(),
    filter: json.optional(),
  }),
  'checkpoint.put': z.object({ thread_id, ...put }),
  'checkpoint.put_writes': z.object({ thread_id, ...putWrites }),
  'checkpoint.put_all': z.object({
    thread_id,
    puts: z.array(z.object(put)),
    put_writes: z.array(z.object(putWrites)),
  }),
  'checkpoint.delete_thread': z.object({ thread_id }),
  'checkpoint.copy_thread': z.object({ thread_id, to_thread_id: z.guid() }),
};

export type CheckpointParams = { readonly [M in keyof ServerCalls]: z.output<(typeof SCHEMAS)[M]> };

/** Throws DomainError, which names each parameter and what was expected. */
export function parseCheckpointParams<M extends keyof ServerCalls>(
  method: M,
  params: unknown,
): CheckpointParams[M] {
  const schema = SCHEMAS[method] as unknown as z.ZodType<CheckpointParams[M]>;
  const parsed = parseWith(schema, params);
  if (parsed.ok) return parsed.value;
  const issues = parsed.issues.slice(0, MAX_ISSUES).map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
  throw new DomainError('conflict', `Invalid parameters of ${method}: ${issues.join('; ')}`);
}

const MAX_ISSUES = 5;
