// The deployment of a storm of agent servers: graphs without a model, whose state is the list of the steps that were done, each
// with its run and its user, and a handler whose users differ from run to run.

/** Supersteps of the graph `work`, with the nodes of each. */
export const WORK: readonly (readonly string[])[] = [
  ['one'],
  ['two'],
  ['left', 'middle', 'right'],
  ['four'],
  ['five'],
];
/** Of the graph `ask`, until it asks. */
export const ASK: readonly (readonly string[])[] = [['before']];
/** And when it goes on. */
export const RESUMED: readonly (readonly string[])[] = [['asked'], ['after']];

export const CONFIG: object = {
  graphs: { work: './graphs.ts:work', ask: './graphs.ts:ask' },
  auth: { path: './auth.ts:auth' },
  env: {},
};

const AUTH = `
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';
export const auth = new Auth().authenticate(async (request: Request) => {
  const token = request.headers.get('authorization')?.replace(/^Bearer /, '') ?? '';
  if (!token.startsWith('token-')) throw new HTTPException(401, { message: 'Send a token' });
  return { identity: token.slice(6), permissions: ['p-' + token.slice(6)], mark: 'm-' + token.slice(6) };
});
`;

const GRAPHS = `
import { setTimeout as pause } from 'node:timers/promises';
import { Annotation, END, interrupt, type LangGraphRunnableConfig, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({
  job: Annotation<string>,
  pauseMs: Annotation<number>,
  steps: Annotation<string[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
});
type Given = typeof State.State;

function entry(job: string, node: string, { configurable = {} }: LangGraphRunnableConfig): string {
  const user = configurable['langgraph_auth_user'];
  return [job, node, user?.identity, user?.permissions?.[0], user?.mark, configurable['langgraph_auth_user_id']].join('|');
}

const step = (node: string) => async ({ job, pauseMs }: Given, config: LangGraphRunnableConfig) => {
  await pause(pauseMs, undefined, { signal: config.signal });
  return { steps: [entry(job, node, config)] };
};

export const work = new StateGraph(State)
  .addNode('one', step('one'))
  .addNode('two', step('two'))
  .addNode('left', step('left'))
  .addNode('middle', step('middle'))
  .addNode('right', step('right'))
  .addNode('four', step('four'))
  .addNode('five', step('five'))
  .addEdge(START, 'one')
  .addEdge('one', 'two')
  .addEdge('two', 'left')
  .addEdge('two', 'middle')
  .addEdge('two', 'right')
  .addEdge(['left', 'middle', 'right'], 'four')
  .addEdge('four', 'five')
  .addEdge('five', END);

function asked(_: Given, config: LangGraphRunnableConfig) {
  const job: string = interrupt({ question: 'go on?' });
  return { job, steps: [entry(job, 'asked', config)] };
}

export const ask = new StateGraph(State)
  .addNode('before', step('before'))
  .addNode('asked', asked)
  .addNode('after', step('after'))
  .addEdge(START, 'before')
  .addEdge('before', 'asked')
  .addEdge('asked', 'after')
  .addEdge('after', END);
`;

export const FILES: Readonly<Record<string, string>> = { 'graphs.ts': GRAPHS, 'auth.ts': AUTH };

/** What a step of a run leaves in the state. */
export function entryOf(job: string, node: string, user: string): string {
  return [job, node, user, `p-${user}`, `m-${user}`, user].join('|');
}
