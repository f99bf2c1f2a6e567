// Sources of a deployment with users: its handlers, a graph that does what its input says, and one that takes all that it can get.

export const AUTH = `
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';
export const auth = new Auth()
  .authenticate(async (request) => {
    const [, name, token = ''] = /^Bearer ([a-z]+)(?:\\.(\\w+))?$/.exec(request.headers.get('authorization') ?? '') ?? [];
    if (name === undefined) throw new HTTPException(401, { message: 'Who?' });
    return { identity: name, permissions: ['all'], token, nested: { tokens: [token] } };
  })
  .on('*', ({ action, value, user }) => {
    if ('metadata' in value && action !== 'search') (value.metadata ??= {}).owner = user.identity;
    return { owner: user.identity };
  });
`;

export const GRAPH = `
import { Annotation, interrupt, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ does: Annotation<unknown>(), seen: Annotation<unknown>() });
const act = async ({ does }, config) => {
  const { configurable = {}, signal, writer } = config;
  writer?.({ at: 'act' });
  if (does?.wait) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  if (does?.ask) return { seen: interrupt('go on?') };
  if (does?.call === undefined) return { seen: 'done' };
  const { graph_auth_user: one, langgraph_auth_user: other, 'x-secret': header } = configurable;
  await fetch(does.call, { method: 'POST', body: JSON.stringify({ one, other, header: header ?? null }) });
  return { seen: 'called' };
};
export const graph = new StateGraph(State).addNode('act', act).addEdge('__start__', 'act').compile();
`;

/** Takes all that it can get, as its input says. */
export const HOSTILE = `
import { Annotation, StateGraph } from '@langchain/langgraph';
import { setTimeout } from 'node:timers/promises';
const State = Annotation.Root({ does: Annotation<unknown>() });
const MEBIBYTE = 1024 * 1024;
const kept = [];
const hostile = {
  loop() { for (;;); },
  crash() { process.kill(process.pid, 'SIGSEGV'); },
  sleep: () => setTimeout(1_000),
  async allocate() {
    for (let i = 0; i < 2048; i += 1) {
      kept.push(Array.from({ length: MEBIBYTE / 8 }, (_, j) => j + 0.5));
      if (i % 64 === 0) await setTimeout(1);
    }
  },
  async buffers() {
    for (let i = 0; i < 2048; i += 1) {
      kept.push(Buffer.alloc(MEBIBYTE, 1));
      if (i % 64 === 0) await setTimeout(1);
    }
    await setTimeout(5_000);
    kept.length = 0;
  },
  /** 100 MB a second, if somebody takes it. */
  async emit({ writer, signal }) {
    const text = 'x'.repeat(100_000);
    while (!signal.aborted) {
      for (let i = 0; i < 10; i += 1) writer(text);
      await setTimeout(10);
    }
  },
};
const act = async ({ does }, config) => {
  config.writer({ at: does });
  await setTimeout(50);
  await hostile[does](config);
  return {};
};
export const graph = new StateGraph(State).addNode('act', act).addEdge('__start__', 'act').compile();
`;
