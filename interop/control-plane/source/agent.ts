// A real graph without a model, whose packages the platform installs.
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ text: Annotation<string>, said: Annotation<string> });

export const graph = new StateGraph(State)
  .addNode('say', ({ text }) => ({ said: `${process.env['GREETING']} ${text}` }))
  .addEdge(START, 'say')
  .addEdge('say', END)
  .compile();
