// The same kinds of graphs in JavaScript, in other forms: a builder, a compiled graph, a factory.
import { Annotation, Command, END, interrupt, Send, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({
  items: Annotation({ reducer: (one, two) => [...one, ...two], default: () => [] }),
  route: Annotation(),
});

/** A builder, with a branch of tasks that run at once. */
export const fan = new StateGraph(State)
  .addNode('split', () => ({ items: ['split'] }))
  .addNode('part', ({ n }) => ({ items: [`part ${n}`] }))
  .addNode('join', ({ items }) => ({ items: [`joined ${items.length}`] }))
  .addEdge(START, 'split')
  .addConditionalEdges('split', () => [1, 2, 3].map((n) => new Send('part', { n })))
  .addEdge('part', 'join')
  .addEdge('join', END);

/** Nodes that say where to go, and two questions one after another. */
export const guide = new StateGraph(State)
  .addNode(
    'first',
    () =>
      new Command({ goto: interrupt('where?') === 'left' ? 'left' : 'right', update: { route: 'asked' } }),
    {
      ends: ['left', 'right'],
    },
  )
  .addNode('left', () => ({ items: ['left'] }))
  .addNode('right', () => ({ items: [`right ${interrupt('really?')}`] }))
  .addEdge(START, 'first')
  .compile();

/** A factory without a promise. */
export function made(config) {
  const style = config.configurable?.style ?? 'plain';
  return new StateGraph(State)
    .addNode('look', () => ({ items: [style] }))
    .addEdge(START, 'look')
    .compile();
}
