// Graphs without a model, for tests of the worker and for comparisons with other servers. The model streams fixed words.
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, AIMessageChunk, type BaseMessage } from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';
import {
  Annotation,
  interrupt,
  type LangGraphRunnableConfig,
  MessagesAnnotation,
  Send,
  StateGraph,
  StateSchema,
} from '@langchain/langgraph';
import { z } from 'zod';

class WordsModel extends BaseChatModel {
  _llmType(): string {
    return 'words';
  }

  async _generate(): Promise<ChatResult> {
    const message = new AIMessage({ id: 'said', content: 'one two three' });
    return { generations: [{ text: 'one two three', message }] };
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (const word of ['one', ' two', ' three']) {
      const message = new AIMessageChunk({ id: 'said', content: word });
      const chunk = new ChatGenerationChunk({ text: word, message });
      yield chunk;
      await manager?.handleLLMNewToken(word, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

const model = new WordsModel({});

const Steps = Annotation.Root({
  steps: Annotation<string[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
  name: Annotation<string>(),
});

const linear = new StateGraph(Steps)
  .addNode('first', (_state, config: LangGraphRunnableConfig) => {
    config.writer?.({ at: 'first' });
    return { steps: ['first'] };
  })
  .addNode('second', () => ({ steps: ['second'] }))
  .addEdge('__start__', 'first')
  .addEdge('first', 'second');

/** A builder: whoever loads it compiles it. */
export const builder: typeof linear = linear;

export const chat = new StateGraph(MessagesAnnotation)
  .addNode('say', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addNode('quiet', async ({ messages }) => {
    await model.withConfig({ tags: ['nostream'] }).invoke(messages);
    return {};
  })
  .addNode('hide', async ({ messages }) => {
    await model.withConfig({ tags: ['langsmith:hidden'] }).invoke(messages);
    return {};
  })
  .addEdge('__start__', 'say')
  .addEdge('say', 'quiet')
  .addEdge('quiet', 'hide')
  .compile();

export const asks = new StateGraph(Steps)
  .addNode('ask', () => ({ steps: [`said ${interrupt({ question: 'who?' })}`] }))
  .addNode('end', () => ({ steps: ['end'] }))
  .addEdge('__start__', 'ask')
  .addEdge('ask', 'end')
  .compile();

export const fans = new StateGraph(Steps)
  .addNode('plan', () => ({ steps: ['plan'] }))
  .addNode('work', ({ name }) => ({ steps: [`work ${name}`] }))
  .addNode('join', () => ({ steps: ['join'] }))
  .addEdge('__start__', 'plan')
  .addConditionalEdges('plan', () => ['a', 'b', 'c'].map((name) => new Send('work', { name })), ['work'])
  .addEdge('work', 'join')
  .compile();

const inner = new StateGraph(Steps)
  .addNode('deep', (_state, config: LangGraphRunnableConfig) => {
    config.writer?.('deep inside');
    return { steps: ['deep'] };
  })
  .addNode('deeper', () => ({ steps: ['deeper'] }))
  .addEdge('__start__', 'deep')
  .addEdge('deep', 'deeper')
  .compile();

export const nested = new StateGraph(Steps)
  .addNode('before', () => ({ steps: ['before'] }))
  .addNode('inner', inner)
  .addEdge('__start__', 'before')
  .addEdge('before', 'inner')
  .compile();

export const fails = new StateGraph(Steps)
  .addNode('fine', () => ({ steps: ['fine'] }))
  .addNode('broken', () => {
    throw new RangeError('Boo!');
  })
  .addEdge('__start__', 'fine')
  .addEdge('fine', 'broken')
  .compile();

const Anything = Annotation.Root({ value: Annotation<unknown>() });

export const values = new StateGraph(Anything)
  .addNode('make', ({ value }) => {
    if (value === 'bigint') return { value: { deep: [1n] } };
    if (value === 'circular') {
      const round: Record<string, unknown> = {};
      round['again'] = round;
      return { value: round };
    }
    return {
      value: {
        date: new Date(0),
        none: undefined,
        nul: 'a\u0000b',
        error: new Error('x'),
        map: new Map([[1, 2]]),
      },
    };
  })
  .addEdge('__start__', 'make')
  .compile();

const Context = Annotation.Root({ seen: Annotation<unknown>() });

/** What a node sees of its config. */
export const sees = new StateGraph(Context)
  .addNode('look', (_state, config: LangGraphRunnableConfig) => {
    const { graph_auth_user: user, 'x-token': token, place } = config.configurable ?? {};
    return { seen: { user: user?.identity, hasToken: token !== undefined, place, context: config.context } };
  })
  .addEdge('__start__', 'look')
  .compile();

/** Goes on until it is cancelled. */
export const waits = new StateGraph(Steps)
  .addNode('quick', () => ({ steps: ['quick'] }))
  .addNode('slow', (_state, { signal }: LangGraphRunnableConfig) => {
    const { promise, reject } = Promise.withResolvers<never>();
    signal?.addEventListener('abort', () => reject(new Error('aborted')));
    return promise;
  })
  .addEdge('__start__', 'quick')
  .addEdge('quick', 'slow')
  .compile();

/** Two interrupts of one node, one after the other. */
export const asksTwice = new StateGraph(Steps)
  .addNode('ask', () => {
    const name = interrupt('name?');
    return { steps: [`${name} ${interrupt('age?')}`] };
  })
  .addEdge('__start__', 'ask')
  .compile();

export const promised: Promise<unknown> = Promise.resolve(linear);

export function made({ configurable }: { configurable?: { place?: string } }, runtime: unknown): unknown {
  const place = configurable?.place ?? 'nowhere';
  return new StateGraph(Steps)
    .addNode('made', () => ({ steps: [place, JSON.stringify(runtime)] }))
    .addEdge('__start__', 'made');
}

export const wrapped = { builder: {}, graph: linear.compile() };
export const notGraph = { some: 'object' };
export const failing: Promise<never> = Promise.reject(new Error('no key for the model'));
failing.catch(() => {});

const Count = Annotation.Root({ count: Annotation<number>() });

/** Five hundred steps, each with an event of its own. */
export const emits = new StateGraph(Count)
  .addNode('emit', ({ count }, config: LangGraphRunnableConfig) => {
    config.writer?.(count);
    return { count: count + 1 };
  })
  .addEdge('__start__', 'emit')
  .addConditionalEdges('emit', ({ count }) => (count < 500 ? 'emit' : '__end__'), ['emit', '__end__'])
  .compile()
  .withConfig({ recursionLimit: 1000 });

/** Built with a schema, which has a JSON Schema. */
export const described = new StateGraph(new StateSchema({ name: z.string() }))
  .addNode('keep', () => ({}))
  .addEdge('__start__', 'keep')
  .compile();

/** Interrupts of two nodes at once. */
export const asksSideBySide = new StateGraph(Steps)
  .addNode('left', () => ({ steps: [`left ${interrupt('left?')}`] }))
  .addNode('right', () => ({ steps: [`right ${interrupt('right?')}`] }))
  .addEdge('__start__', 'left')
  .addEdge('__start__', 'right')
  .compile();
