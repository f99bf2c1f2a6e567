// What the worker uses of `@langchain/langgraph`: the copy of the deployment, which is loaded at run time. The types are the part
// of its public interface that is used here, so that this program compiles without the library.
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LoadError } from '../method.ts';

/** The address of the file that a bare import means for the deployment. */
export type Resolve = (specifier: string) => string;

export type GraphConfig = {
  readonly configurable?: Record<string, unknown>;
  readonly metadata?: Record<string, unknown>;
};

export type GraphEvent = {
  readonly event: string;
  readonly run_id: string;
  readonly tags?: readonly string[];
  readonly metadata?: Record<string, unknown>;
  readonly data: { readonly chunk?: unknown };
};

export type StateTask = {
  readonly id: string;
  readonly name: string;
  readonly error?: unknown;
  readonly interrupts: readonly unknown[];
  readonly path?: readonly unknown[];
  readonly state?: StateSnapshot | GraphConfig;
  readonly result?: unknown;
};

export type StateSnapshot = {
  readonly values: unknown;
  readonly next: readonly string[];
  readonly tasks: readonly StateTask[];
  readonly metadata?: Record<string, unknown>;
  readonly config: GraphConfig;
  readonly createdAt?: string;
  readonly parentConfig?: GraphConfig;
};

type HistoryOptions = {
  readonly limit?: number;
  readonly before?: GraphConfig;
  readonly filter?: Readonly<Record<string, unknown>>;
};

/** A graph that can run. */
export type CompiledGraph = {
  checkpointer?: unknown;
  readonly builder?: unknown;
  readonly interruptBefore?: readonly string[] | '*';
  readonly interruptAfter?: readonly string[] | '*';
  withConfig(config: object): CompiledGraph;
  stream(input: unknown, options: object): Promise<AsyncIterable<unknown>>;
  streamEvents(input: unknown, options: object): AsyncIterable<GraphEvent>;
  getState(config: GraphConfig, options?: { readonly subgraphs?: boolean }): Promise<StateSnapshot>;
  getStateHistory(config: GraphConfig, options: HistoryOptions): AsyncIterable<StateSnapshot>;
  updateState(config: GraphConfig, values: unknown, asNode?: string): Promise<GraphConfig>;
  getGraphAsync(config: object): Promise<{ toJSON(): unknown }>;
};

/** Writes values for storage, and reads them again. */
export type Serializer = {
  dumpsTyped(value: unknown): Promise<[string, Uint8Array | string]>;
  loadsTyped(type: string, data: Uint8Array | string): Promise<unknown>;
};

export type BaseSaver = { serde: Serializer };

export type Library = {
  readonly version: string;
  readonly Command: new (fields: object) => object;
  readonly Send: new (node: string, input: unknown) => object;
  readonly BaseCheckpointSaver: new () => BaseSaver;
  /** Another module of the deployment, such as `@langchain/core/…`; undefined where it has none. */
  importOptional(specifier: string): Promise<Readonly<Record<string, unknown>> | undefined>;
};

const NAME = '@langchain/langgraph';

/** A LoadError where the deployment has no `@langchain/langgraph`. */
export async function loadLibrary(resolve: Resolve): Promise<Library> {
  const address = resolveLibrary(resolve);
  const library: Partial<Library> = await import(address);
  const { Command, Send, BaseCheckpointSaver } = library;
  if (Command === undefined || Send === undefined || BaseCheckpointSaver === undefined) {
    throw new LoadError(
      'dependencies',
      `${NAME} lacks Command, Send or BaseCheckpointSaver: install 1.0 or newer.`,
    );
  }
  const importOptional = async (specifier: string): Promise<Record<string, unknown> | undefined> => {
    let found: string;
    try {
      found = resolve(specifier);
    } catch {
      return undefined;
    }
    return await import(found);
  };
  return { version: await readVersion(address), Command, Send, BaseCheckpointSaver, importOptional };
}

function resolveLibrary(resolve: Resolve): string {
  try {
    return resolve(NAME);
  } catch {
    const message = `${NAME} is not installed: add it to the dependencies of the deployment and install them.`;
    throw new LoadError('dependencies', message);
  }
}

/** Of the nearest package.json with the name: the entry file is some folders below it. */
async function readVersion(address: string): Promise<string> {
  let folder = dirname(fileURLToPath(address));
  for (;;) {
    const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => undefined);
    const { name, version } = text === undefined ? {} : JSON.parse(text);
    if (name === NAME && typeof version === 'string') return version;
    const parent = dirname(folder);
    if (parent === folder) return '0.0.0';
    folder = parent;
  }
}
