// Traces and feedback of the deployment's own LangSmith account, where its variables ask for them.
import type { WorkerEvent } from '../protocol/messages.ts';
import type { Library } from './library.ts';
import { writeJson } from './json-text.ts';

type Tracer = new (fields: object) => object;
type LangSmith = {
  readonly Client: new () => FeedbackClient;
  getDefaultProjectName(): string;
};
type FeedbackClient = {
  createPresignedFeedbackToken(runId: string, key: string): Promise<{ readonly url: string }>;
};

/** An address to send to, or a key, with which the client's own address is meant. */
const ACCOUNT = ['ENDPOINT', 'API_KEY', 'RUNS_ENDPOINTS'].flatMap((name) => [
  `LANGSMITH_${name}`,
  `LANGCHAIN_${name}`,
]);

/** Without an account among the variables the client would try the host of its vendor: nothing is sent anywhere then. */
export function hasTracingAccount(): boolean {
  return ACCOUNT.some((name) => (process.env[name] ?? '').trim() !== '');
}

const SWITCHES = ['LANGSMITH_TRACING_V2', 'LANGCHAIN_TRACING_V2', 'LANGSMITH_TRACING', 'LANGCHAIN_TRACING'];

/**
 * The tracer of a run, undefined without tracing. The library makes one itself, which copies every text, number and boolean of
 * `configurable` into the traces: this one has its own, empty value for the hidden names, which the library leaves as it is.
 */
export async function createTracer(
  library: Library,
  configurable: Readonly<Record<string, unknown>>,
  hidden: ReadonlySet<string>,
): Promise<object | undefined> {
  const { langsmith_project: project, langsmith_example_id: example } = configurable;
  const hasProject = typeof project === 'string' && project !== '' && hasTracingAccount();
  if (!hasProject && !SWITCHES.some((name) => process.env[name] === 'true')) return undefined;
  const module = await library.importOptional('@langchain/core/tracers/tracer_langchain');
  const Tracer = module?.['LangChainTracer'] as Tracer | undefined;
  if (Tracer === undefined) return undefined;
  const metadata = Object.fromEntries([...hidden].map((name) => [name, undefined]));
  if (!hasProject) return new Tracer({ metadata });
  const { getDefaultProjectName } = await importLangSmith(library);
  const replicas = [
    [project, { reference_example_id: example }],
    [getDefaultProjectName(), undefined],
  ];
  return new Tracer({ metadata, replicas });
}

/** An address for each key where users leave feedback about the run. Asks the account, which there must be. */
export async function createFeedbackEvent(
  library: Library,
  runId: string,
  keys: readonly string[],
): Promise<WorkerEvent> {
  const { Client } = await importLangSmith(library);
  const client = new Client();
  const urls = await Promise.all(
    keys.map(async (key) => [key, (await client.createPresignedFeedbackToken(runId, key)).url] as const),
  );
  return { event: 'feedback', data: writeJson(Object.fromEntries(urls), 'The event `feedback`') };
}

async function importLangSmith(library: Library): Promise<LangSmith> {
  const module = await library.importOptional('langsmith');
  if (module === undefined) {
    throw new Error('`feedback_keys` and `langsmith_tracer` need the package langsmith in the deployment.');
  }
  return module as LangSmith;
}
