// The options that the library gets for a run: config, modes and interrupts of the run, and the metadata of its checkpoints.
import { Refusal } from '../method.ts';
import type { RunToStart } from '../protocol/calls.ts';
import type { JsonObject } from '../protocol/messages.ts';
import { omit } from './chunk-event.ts';
import type { GraphConfig } from './library.ts';

/** A config as clients write it. */
export type RunConfig = {
  readonly configurable?: Record<string, unknown>;
  readonly tags?: readonly string[];
  readonly recursion_limit?: number;
  readonly max_concurrency?: number;
};

/** Where a run begins: absent, at the last checkpoint of its thread. */
export type StartPlace = RunToStart['checkpoint'];

export function parseRunConfig({ config, run_id, thread_id }: RunToStart): RunConfig {
  const parsed: RunConfig = JSON.parse(config);
  return { ...parsed, configurable: { ...parsed.configurable, run_id, thread_id } };
}

export function createRunOptions(
  run: RunToStart,
  config: RunConfig,
  library: string,
): Record<string, unknown> {
  const options = {
    // Also for `stream`: with it, envelopes of checkpoints accompany the values of subgraphs.
    version: 'v2',
    interruptBefore: run.interrupt_before,
    interruptAfter: run.interrupt_after,
    tags: config.tags,
    context: run.context === undefined ? undefined : JSON.parse(run.context),
    recursionLimit: config.recursion_limit,
    maxConcurrency: requirePositive(config.max_concurrency, 'max_concurrency'),
    subgraphs: run.stream_subgraphs,
    metadata: {
      ...run.metadata,
      run_attempt: run.attempt,
      langgraph_version: library,
      langgraph_plan: 'developer',
      langgraph_host: 'self-hosted',
    },
    runId: run.run_id,
    streamMode: libraryModes(run.stream_mode),
    durability: run.durability,
  };
  // An undefined option would take the place of one that the graph is bound to.
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** With none at a time, the library would wait for ever. Throws a Refusal. */
function requirePositive(given: unknown, name: string): number | undefined {
  if (given === undefined || given === null) return undefined;
  if (typeof given === 'number' && Number.isInteger(given) && given > 0) return given;
  throw new Refusal('invalid', `\`config.${name}\` must be a whole number from 1.`);
}

export function configurableAt(config: RunConfig, place: StartPlace): Record<string, unknown> {
  return { ...config.configurable, ...place };
}

/** `debug` is what tells the last checkpoint; `messages` of clients is put together from events and values. */
function libraryModes(asked: readonly string[]): string[] {
  const modes = new Set(asked.filter((mode) => mode !== 'events' && mode !== 'messages-tuple'));
  if (asked.includes('messages-tuple')) modes.add('messages');
  if (asked.includes('messages')) modes.add('values');
  modes.add('debug');
  return [...modes];
}

/** The library has its own place for these. */
const NAMED_BY_CHECKPOINT = new Set(['checkpoint_ns', 'checkpoint_id', 'run_id', 'thread_id']);

/** What the metadata of a checkpoint has of its config: nothing of the authentication. */
export function describeCheckpoint(
  { configurable, metadata }: GraphConfig,
  hidden: ReadonlySet<string>,
): JsonObject {
  const entries = Object.entries(configurable ?? {});
  const described = entries.filter(([name]) => !name.startsWith('__') && !NAMED_BY_CHECKPOINT.has(name));
  return { ...omit(Object.fromEntries(described), hidden), ...omit(metadata ?? {}, hidden) };
}
