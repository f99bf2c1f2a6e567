// Graphs without a model: steps, a question, a subgraph, messages of a fake model, an error, a loop.
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { type LangGraphRunnableConfig, END, interrupt, START, StateGraph } from '@langchain/langgraph';
import { Decision, ApprovalState, LoopState, MessagesAnnotation, ReportState, TrailState } from './state.js';

type Trail = typeof TrailState.State;

const step =
  (name: string) =>
  async ({ count }: Trail, config: LangGraphRunnableConfig): Promise<Partial<Trail>> => {
    config.writer?.({ at: name, count });
    return { trail: [name], count: count + 1 };
  };

/** A builder that nobody has compiled. */
export const steps = new StateGraph(TrailState)
  .addNode('one', step('one'))
  .addNode('two', step('two'))
  .addNode('three', step('three'))
  .addEdge(START, 'one')
  .addEdge('one', 'two')
  .addEdge('two', 'three')
  .addEdge('three', END);

export const approval = new StateGraph(ApprovalState)
  .addNode('ask', ({ request }) => ({ decision: interrupt<unknown, string>({ question: request }) }))
  .addNode('act', ({ decision }) => ({
    decision: decision === Decision.yes ? 'approved' : `refused: ${decision}`,
  }))
  .addEdge(START, 'ask')
  .addEdge('ask', 'act')
  .addEdge('act', END)
  .compile();

const inner = new StateGraph(TrailState)
  .addNode('deep', step('deep'))
  .addNode('deeper', async (state: Trail, config) => {
    const decision = state.count > 100 ? interrupt('deep question') : 'deeper';
    return step(String(decision))(state, config);
  })
  .addEdge(START, 'deep')
  .addEdge('deep', 'deeper')
  .compile();

/** A promise of a compiled graph. */
export const nested = Promise.resolve(
  new StateGraph(TrailState)
    .addNode('before', step('before'))
    .addNode('inside', inner)
    .addEdge(START, 'before')
    .addEdge('before', 'inside')
    .compile(),
);

export const chat = new StateGraph(MessagesAnnotation)
  .addNode('model', async ({ messages }) => {
    const model = new FakeListChatModel({ responses: [`you said ${String(messages.at(-1)?.content)}`] });
    return { messages: [await model.invoke(messages)] };
  })
  .addEdge(START, 'model')
  .compile();

class BooError extends Error {
  override name = 'BooError';
}

export const failing = new StateGraph(TrailState)
  .addNode('fine', step('fine'))
  .addNode('broken', () => {
    throw new BooError('Boo!');
  })
  .addEdge(START, 'fine')
  .addEdge('fine', 'broken')
  .compile();

/** `rounds` supersteps of `pause` milliseconds each. */
export const loop = new StateGraph(LoopState)
  .addNode('turn', async ({ done, pause }, config) => {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pause ?? 10);
      config.signal?.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
    config.signal?.throwIfAborted();
    return { done: done + 1 };
  })
  .addEdge(START, 'turn')
  .addConditionalEdges('turn', ({ done, rounds }) => (done < rounds ? 'turn' : END))
  .compile();

/** A factory: the graph is made for each configuration. It reports what a node sees of it. */
export async function report(made: LangGraphRunnableConfig) {
  return new StateGraph(ReportState)
    .addNode('look', (_, config) => {
      const { configurable = {}, context } = config as LangGraphRunnableConfig & { context?: unknown };
      const user = configurable['langgraph_auth_user'] as { identity?: string } | undefined;
      return {
        seen: {
          style: configurable['style'] ?? null,
          styleOfFactory: made.configurable?.['style'] ?? null,
          context: context ?? null,
          identity: user?.identity ?? null,
          userId: configurable['langgraph_auth_user_id'] ?? null,
          permissions: configurable['langgraph_auth_permissions'] ?? null,
          greeting: process.env['GREETING'] ?? null,
        },
      };
    })
    .addEdge(START, 'look')
    .compile();
}
