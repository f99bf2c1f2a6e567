// A graph that emits numbered events for some seconds, and says which version of it runs.
import { setTimeout as delay } from 'node:timers/promises';
import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from '@langchain/langgraph';

const VERSION = 0;

const State = Annotation.Root({
  ticks: Annotation<number>,
  pauseMs: Annotation<number>,
  version: Annotation<number>,
});

async function tick({ ticks, pauseMs }: typeof State.State, { writer }: LangGraphRunnableConfig) {
  for (let n = 0; n < (ticks ?? 0); n += 1) {
    await delay(pauseMs);
    writer?.({ tick: n });
  }
  return { version: VERSION };
}

export const graph = new StateGraph(State).addNode('tick', tick).addEdge(START, 'tick').addEdge('tick', END);
