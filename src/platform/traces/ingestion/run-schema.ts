// The fields of a run that are no payloads, as clients send them: checked, and with what `dotted_order` says of the run. Pure.
import { type Issue, type Loc, parseWith, z } from '../../../base/schema.ts';
import { freeId, projectName } from '../projects/project-schema.ts';
import type { RunProject, RunStart, RunValues } from '../runs/run-part.ts';
import { storable } from '../runs/run-derivation.ts';
import { formatSegment, LAST_MS, ORDER_PATTERN, parseDottedOrder, toMicroseconds } from '../runs/run-time.ts';

const MAX_TAGS = 1_000;
/** How far the clock of a client may be ahead. */
const AHEAD_DAYS = 1;
const DAY_MS = 86_400_000;

const time = z
  .union([z.string().meta({ format: 'date-time' }), z.number().meta({ minimum: 0, maximum: LAST_MS })])
  .refine(
    (value) => toMicroseconds(value) !== undefined,
    'Input must be a time from 1970 to 9999: ISO 8601, or milliseconds since 1970',
  )
  .transform((value) => toMicroseconds(value) ?? '');

/** Whether it agrees with the ids is checked behind the schema. */
const dottedOrder = z.string().meta({ pattern: ORDER_PATTERN });

const runTypes = ['tool', 'chain', 'llm', 'retriever', 'embedding', 'prompt', 'parser'] as const;

export const runMembers = z.object({
  id: freeId.nullish(),
  trace_id: freeId.nullish(),
  parent_run_id: freeId.nullish(),
  dotted_order: dottedOrder.nullish(),
  name: z.string().nullish(),
  run_type: z.enum(runTypes).nullish(),
  start_time: time.nullish(),
  end_time: time.nullish(),
  tags: z.array(z.string()).max(MAX_TAGS).nullish(),
  session_id: freeId.nullish(),
  session_name: projectName.nullish(),
  reference_example_id: freeId.nullish(),
});

type Members = z.output<typeof runMembers>;

export const memberNames: ReadonlySet<string> = new Set(Object.keys(runMembers.shape));

export type Kind = 'post' | 'patch';

/** What is known of a run without its payloads. */
export type RunFacts = {
  readonly id: string;
  readonly project: RunProject;
  readonly start: RunStart;
  readonly values: RunValues;
};

export type FactsContext = {
  readonly kind: Kind;
  /** Of the run in the request. */
  readonly loc: Loc;
  /** Of the path, or of the name of a part: the run itself may leave it out. */
  readonly id?: string | undefined;
  /** Whether `trace_id` and `dotted_order` must be there. */
  readonly isPlaced: boolean;
} & IngestionTimes;

export type IngestionTimes = {
  /** In milliseconds since 1970. */
  readonly now: number;
  /** How long runs are kept: an older one would be gone within the hour. */
  readonly keptDays: number;
};

/** Every issue at once. */
export function readFacts(
  members: Readonly<Record<string, unknown>>,
  context: FactsContext,
): { readonly facts: RunFacts } | { readonly issues: readonly Issue[] } {
  const { loc, kind } = context;
  const parsed = parseWith(runMembers, members, loc);
  if (!parsed.ok) return { issues: parsed.issues };
  const given = parsed.value;
  const issues: Issue[] = [];
  const add = (name: keyof Members, msg: string, type: Issue['type'] = 'value_error'): void =>
    void issues.push({ loc: [...loc, name], msg, type });
  const id = given.id ?? context.id;
  if (id === undefined) add('id', 'Field required', 'missing');
  if (context.id !== undefined && id !== context.id) add('id', ANOTHER_ID);
  if (context.isPlaced)
    for (const name of ['trace_id', 'dotted_order'] as const)
      if (!given[name]) add(name, 'Field required', 'missing');
  if (id === undefined || issues.length > 0) return { issues };
  const start = toStart(id, given, context, add);
  if (start === undefined || issues.length > 0) return { issues };
  return { facts: { id, project: toProject(kind, given), start, values: toValues(given) } };
}

const ANOTHER_ID = 'Input must be the id by which the request names the run';

type Add = (name: keyof Members, msg: string) => void;

function toStart(
  id: string,
  given: Members,
  { now, keptDays }: IngestionTimes,
  add: Add,
): RunStart | undefined {
  const start = given.dotted_order ? ofOrder(id, given, given.dotted_order, add) : ofMembers(id, given, now);
  if (start === undefined) return undefined;
  const ms = Date.parse(start.start_time);
  const place = given.dotted_order ? 'dotted_order' : 'start_time';
  if (ms < now - keptDays * DAY_MS)
    add(place, `The run started more than ${keptDays} days ago: it is kept no longer`);
  if (ms > now + AHEAD_DAYS * DAY_MS)
    add(place, 'The run starts more than a day from now: check the clock of the client');
  return start;
}

function ofOrder(id: string, given: Members, order: string, add: Add): RunStart | undefined {
  const lineage = parseDottedOrder(order);
  if (lineage === undefined) {
    add('dotted_order', ORDER);
    return undefined;
  }
  const { id: last, ...start } = lineage;
  if (last !== id) add('dotted_order', 'Its last id must be the id of the run');
  if (given.trace_id && given.trace_id !== start.trace_id)
    add('trace_id', 'Input must be the first id of dotted_order');
  if (given.parent_run_id && given.parent_run_id !== start.parent_run_id)
    add('parent_run_id', 'Input must be the last id but one of dotted_order');
  return { rank: 2, ...start };
}

const ORDER =
  'Input must be 1 to 1000 segments, each <YYYYMMDD>T<HHMMSSffffff>Z<id of a run>, joined by dots';

function ofMembers(id: string, given: Members, now: number): RunStart {
  const received = toMicroseconds(now) ?? '';
  const start_time = given.start_time ?? received;
  const parent = given.parent_run_id ?? null;
  return {
    rank: given.start_time ? 1 : 0,
    start_time,
    trace_id: given.trace_id ?? parent ?? id,
    parent_run_id: parent,
    parent_run_ids: parent === null ? [] : [parent],
    dotted_order: formatSegment(start_time, id),
  };
}

export const DEFAULT_PROJECT = 'default';

function toProject(kind: Kind, { session_id: id, session_name: name }: Members): RunProject {
  const rank = kind === 'post' ? 2 : 1;
  if (id) return { rank, id };
  return name ? { rank, name } : { rank: 0, name: DEFAULT_PROJECT };
}

function toValues({ name, run_type, end_time, tags, reference_example_id }: Members): RunValues {
  return {
    ...(name ? { name: storable(name) } : {}),
    ...(run_type ? { run_type } : {}),
    ...(end_time ? { end_time } : {}),
    ...(tags ? { tags: tags.map(storable) } : {}),
    ...(reference_example_id ? { reference_example_id } : {}),
  };
}
