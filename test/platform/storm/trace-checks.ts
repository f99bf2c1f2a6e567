// What must hold after a storm: of what was accepted nothing is lost, nothing is there twice, no field of a part is missing, and what
// one request sent is there as a whole or not at all. Pure.
import { isDeepStrictEqual } from 'node:util';
import { ATTACHMENT, type Kind, OWN_FIELDS, type Part, type SentRun } from './trace-runs.ts';

/** `unknown`: the response was lost, or says that nobody knows. */
export type Outcome = 'accepted' | 'refused' | 'unknown';

export type SentRequest = {
  readonly parts: readonly Part[];
  readonly outcome: Outcome;
  /** Ids of the runs whose attachment it had. */
  readonly attached: readonly string[];
};

/** A run as the API reads it. */
export type FoundRun = Readonly<Record<string, unknown>> & { readonly id: string };

export type Found = {
  readonly runs: readonly FoundRun[];
  /** Names of projects by their ids. */
  readonly projects: ReadonlyMap<string, string>;
};

const KINDS: readonly Kind[] = ['post', 'patch'];

export function checkTraces(requests: readonly SentRequest[], { runs, projects }: Found): readonly string[] {
  const found = new Map(runs.map((run) => [run.id, run]));
  const sent = new Map(requests.flatMap(({ parts }) => parts.map(({ run }) => [run.id, run] as const)));
  const outcomes = outcomesOf(requests);
  return [
    ...findDoubles(runs),
    ...runs.filter(({ id }) => !sent.has(id)).map(({ id }) => `nobody sent ${id}`),
    ...[...sent.values()].flatMap((run) => checkRun(run, found.get(run.id), { outcomes, projects })),
    ...checkWholes(requests, found),
    ...checkAttachments(requests, found),
  ];
}

function findDoubles(runs: readonly FoundRun[]): readonly string[] {
  const seen = new Set<string>();
  return runs.flatMap(({ id }) => {
    if (seen.has(id)) return [`${id} is there twice`];
    seen.add(id);
    return [];
  });
}

const keyOf = ({ run, kind }: Part): string => `${kind} ${run.id}`;

/** The best outcome of each part, over all requests that had it. */
function outcomesOf(requests: readonly SentRequest[]): ReadonlyMap<string, Outcome> {
  const rank: readonly Outcome[] = ['refused', 'unknown', 'accepted'];
  const best = new Map<string, Outcome>();
  for (const { parts, outcome } of requests)
    for (const part of parts) {
      const before = best.get(keyOf(part)) ?? 'refused';
      best.set(keyOf(part), rank.indexOf(outcome) > rank.indexOf(before) ? outcome : before);
    }
  return best;
}

type Context = {
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly projects: Found['projects'];
};

function checkRun(run: SentRun, found: FoundRun | undefined, { outcomes, projects }: Context) {
  const problems = KINDS.flatMap((kind) => {
    const outcome = outcomes.get(keyOf({ run, kind }));
    const isThere = has(found, { run, kind });
    if (outcome === 'accepted' && !isThere) return [`lost: the ${kind} of ${run.id} was accepted`];
    if (outcome !== 'accepted' && outcome !== 'unknown' && isThere)
      return [`the ${kind} of ${run.id} was refused, and is there`];
    return found === undefined ? [] : checkFields(run, kind, { found, isThere });
  });
  return found === undefined ? problems : [...problems, ...checkShared(run, found, projects)];
}

/** By the one field that no other part brings, and that none has by default. */
function has(found: FoundRun | undefined, { run, kind }: Part): boolean {
  if (found === undefined) return false;
  return kind === 'post' ? found['name'] === run.post['name'] : (found['end_time'] ?? null) !== null;
}

type Seen = { readonly found: FoundRun; readonly isThere: boolean };

function checkFields(run: SentRun, kind: Kind, { found, isThere }: Seen): readonly string[] {
  const error = kind === 'patch' ? ['error'] : [];
  return [...OWN_FIELDS[kind], ...error].flatMap((name) => {
    const wanted = isThere ? run[kind][name] : undefined;
    // What no part brought has a value by default.
    if (wanted === undefined && name === 'run_type') return [];
    const isAsSent = wanted === undefined ? isEmpty(found[name]) : isSame(name, found[name], wanted);
    return isAsSent ? [] : [`${name} of ${run.id} is ${shown(found[name])} instead of ${shown(wanted)}`];
  });
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '' || isDeepStrictEqual(value, {});
}

function isSame(name: string, found: unknown, wanted: unknown): boolean {
  if (name === 'end_time') return toMs(found) === toMs(wanted);
  return isDeepStrictEqual(found, wanted);
}

/** A time without a zone is in UTC. */
function toMs(time: unknown): number {
  const text = String(time);
  return Date.parse(/Z$|[+-]\d\d:\d\d$/.test(text) ? text : `${text}Z`);
}

function checkShared(run: SentRun, found: FoundRun, projects: Found['projects']): readonly string[] {
  const hasPost = has(found, { run, kind: 'post' });
  const hasPatch = has(found, { run, kind: 'patch' });
  const extra = (hasPatch ? run.patch : run.post)['extra'];
  const project = hasPost ? run.project : (run.patch['session_name'] ?? 'default');
  const named = projects.get(String(found['session_id']));
  const place = ['dotted_order', 'trace_id', 'parent_run_id'].filter(
    (name) => (found[name] ?? undefined) !== run.post[name],
  );
  return [
    ...(isDeepStrictEqual(found['extra'], extra) ? [] : [`extra of ${run.id} is ${shown(found['extra'])}`]),
    ...(named === project ? [] : [`${run.id} is in ${named} instead of ${String(project)}`]),
    ...place.map((name) => `${name} of ${run.id} is ${shown(found[name])}`),
    ...(!hasPost || isDeepStrictEqual(found['tags'], run.post['tags'])
      ? []
      : [`tags of ${run.id} are missing`]),
  ];
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 120);
}

/** Of a request whose response was lost, the parts that no other request can have stored. */
function checkWholes(
  requests: readonly SentRequest[],
  found: ReadonlyMap<string, FoundRun>,
): readonly string[] {
  const senders = new Map<string, number>();
  for (const { parts, outcome } of requests)
    for (const part of parts)
      if (outcome !== 'refused') senders.set(keyOf(part), (senders.get(keyOf(part)) ?? 0) + 1);
  return requests
    .filter(({ outcome }) => outcome === 'unknown')
    .flatMap(({ parts }) => {
      const own = parts.filter((part) => senders.get(keyOf(part)) === 1);
      const there = own.filter((part) => has(found.get(part.run.id), part));
      return there.length === 0 || there.length === own.length
        ? []
        : [`${there.length} of ${own.length} parts of one request are there: ${own.map(keyOf).join(', ')}`];
    });
}

/** Of requests that were accepted. */
function checkAttachments(
  requests: readonly SentRequest[],
  found: ReadonlyMap<string, FoundRun>,
): readonly string[] {
  const accepted = requests.filter(({ outcome }) => outcome === 'accepted');
  return [...new Set(accepted.flatMap(({ attached }) => attached))]
    .filter((id) => !Object.hasOwn(Object(found.get(id)?.['s3_urls']), `attachment.${ATTACHMENT}`))
    .map((id) => `the attachment of ${id} is missing`);
}
