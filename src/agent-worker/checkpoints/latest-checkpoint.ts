// The last checkpoint of the thread of a run, which comes with the start of the run: the graph gets it without asking the server.
import type { CallContext } from '../method.ts';
import type { ServerCalls, StoredCheckpoint } from '../protocol/calls.ts';

/** `latest`: null where there is none; undefined where it is not known. Whatever is asked first, everything else is the server's. */
export function withLatest(
  callServer: CallContext['callServer'],
  latest: StoredCheckpoint | null | undefined,
): CallContext['callServer'] {
  let known = latest;
  return <M extends keyof ServerCalls>(method: M, params: ServerCalls[M]['params']) => {
    const found = known;
    known = undefined;
    if (found === undefined || method !== 'checkpoint.get' || !isOfLatest(params))
      return callServer(method, params);
    return Promise.resolve(found as ServerCalls[M]['result']);
  };
}

function isOfLatest(params: ServerCalls[keyof ServerCalls]['params']): boolean {
  const { checkpoint_ns: namespace, checkpoint_id: id } = params as ServerCalls['checkpoint.get']['params'];
  return namespace === '' && id === undefined;
}
