// Runs that nobody waits for: started, looked at and cancelled by the benchmark itself.
import { setTimeout as delay } from 'node:timers/promises';
import { type Connections, createConnections, createThread, postJson, readBody } from './run-requests.ts';

export type BackgroundRun = { readonly path: string };

const START_DEADLINE_MS = 20_000;

/** A run that nobody waits for, when it is executed. */
export async function startRunOf(url: string, graph: string): Promise<BackgroundRun> {
  const connections = createConnections(url);
  try {
    const threadId = await createThread(connections);
    const text = await postJson(connections, `/threads/${threadId}/runs`, {
      ...{ assistant_id: graph, input: { topic: 'harbours' } },
    });
    const path = `/threads/${threadId}/runs/${JSON.parse(text).run_id}`;
    await waitForStart(connections, path);
    return { path };
  } finally {
    connections.close();
  }
}

async function waitForStart(connections: Connections, path: string): Promise<void> {
  const endMs = performance.now() + START_DEADLINE_MS;
  for (;;) {
    const { status } = JSON.parse(await readBody(await connections.request('GET', path)));
    if (status !== 'pending') return;
    if (performance.now() > endMs) throw new Error(`${path} is still pending`);
    await delay(50);
  }
}

/** Whether a run that has ended meanwhile is refused does not matter. */
export async function cancelRun(url: string, path: string): Promise<void> {
  const response = await fetch(`${url}${path}/cancel`, { method: 'POST' });
  await response.body?.cancel();
}
