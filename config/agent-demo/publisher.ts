// A graph without a model: it drafts a note, asks somebody whether to publish it, and does what the response says.
import {
  Annotation,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  START,
  StateGraph,
} from '@langchain/langgraph';

const State = Annotation.Root({
  topic: Annotation<string>,
  note: Annotation<string>,
  log: Annotation<string[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
});
const Context = Annotation.Root({ tone: Annotation<string> });

type Note = typeof State.State;

function draft({ topic }: Note, { context }: LangGraphRunnableConfig<{ tone?: string }>) {
  return { note: `${context?.tone ?? 'plain'} words about ${topic}`, log: ['drafted'] };
}

function review({ note }: Note) {
  const decision: string = interrupt({ question: 'publish it?', note });
  return { log: [`reviewed: ${decision}`] };
}

function publish(_: Note, { configurable }: LangGraphRunnableConfig) {
  return { log: [`published by ${configurable?.['langgraph_auth_user_id']}`] };
}

export const graph = new StateGraph(State, Context)
  .addNode('draft', draft)
  .addNode('review', review)
  .addNode('publish', publish)
  .addEdge(START, 'draft')
  .addEdge('draft', 'review')
  .addEdge('review', 'publish')
  .addEdge('publish', END);
