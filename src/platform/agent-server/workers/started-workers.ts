// GraphWorkers over two pools: which worker gets a call, and which calls are made again when their worker ends or does not
// respond. Handlers and the application have a worker of their own, so that no graph keeps those waiting who are to be let in.
import type { WorkerCalls } from '../../../agent-worker/protocol/calls.ts';
import { FrameTooLarge } from '../../../agent-worker/protocol/frame.ts';
import { AppCall } from './app-call.ts';
import type { CallName, CallOptions, GraphWorkers } from './graph-workers.ts';
import { RunCall } from './run-call.ts';
import { TurnBudget } from './turn-budget.ts';
import { type CallLink, SingleCall, type WorkerCall } from './worker-call.ts';
import { WorkerError } from './worker-error.ts';
import { type PoolParts, WorkerPool } from './worker-pool.ts';
import type { Worker } from './worker.ts';

/** The only call that changes something. */
const NOT_REPEATABLE: CallName = 'state.update';

/** Resolves when the first worker has loaded the deployment. Rejects with a WorkerStartError. */
export async function startGraphWorkers(parts: PoolParts): Promise<GraphWorkers> {
  const { pool, handlers = pool } = createPools(parts);
  const pools = [...new Set([pool, handlers])];
  const close = async (): Promise<void> => void (await Promise.all(pools.map((one) => one.close())));
  const starting = Promise.all([pool.start(), handlers === pool ? undefined : handlers.start()]);
  const [{ library }, ofHandlers] = await starting.catch(async (error: unknown) => {
    await close();
    throw error;
  });
  const { hasAuth = false, hasApp = false } = ofHandlers ?? {};
  return {
    loaded: { library, hasAuth, hasApp },
    call: (method, params, options = {}) =>
      callOnce(method.startsWith('auth.') ? handlers : pool, method, params, options),
    async run(params, options) {
      const { isAlone = false, cancel } = options;
      const worker = await (isAlone ? pool.startAlone(cancel) : pool.acquire(cancel));
      try {
        const create = (link: CallLink): RunCall => new RunCall(link, options, parts.limits.cancelMs);
        const call = begin(worker, create, 'run.start', params);
        call.watch();
        return await call.result;
      } finally {
        if (isAlone) worker.close();
      }
    },
    async request(request, body, { signal }) {
      const worker = await handlers.acquire(signal);
      const call = begin(worker, (link) => new AppCall(link), 'http.request', request);
      const onAbort = (): void => call.cancel();
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
      // A body that fails is a client that has left.
      if (body !== undefined) call.sendBody(body).catch(onAbort);
      return call.response;
    },
    close,
  };
}

/** The second one is for handlers and the application, where there are any. */
function createPools(parts: PoolParts): { readonly pool: WorkerPool; readonly handlers?: WorkerPool } {
  const { deployment, limits } = parts;
  const { graphs, ...rest } = deployment.load;
  const { root } = rest;
  const budget = new TurnBudget(limits.turnMs);
  const pool = new WorkerPool({ ...parts, deployment: { ...deployment, load: { root, graphs } } }, budget);
  if (rest.auth === undefined && rest.app === undefined) return { pool };
  const load = { ...rest, graphs: {} };
  const one = { ...parts, deployment: { ...deployment, load }, limits: { ...limits, workers: 1 } };
  return { pool, handlers: new WorkerPool(one, budget) };
}

async function callOnce<M extends CallName>(
  pool: WorkerPool,
  method: M,
  params: WorkerCalls[M]['params'],
  options: CallOptions,
  isRepeated = false,
): Promise<WorkerCalls[M]['result']> {
  const { signal, checkpoints: port } = options;
  const isRepeatable = !isRepeated && method !== NOT_REPEATABLE;
  const worker = await pool.acquire(signal);
  const call = begin(worker, (link) => new SingleCall(link, method, { port, isRepeatable }), method, params);
  const onAbort = (): void => call.cancel('lost');
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener('abort', onAbort);
  try {
    return await call.result;
  } catch (error) {
    const isLost = error instanceof WorkerError && error.isRetryable;
    if (!isLost || !isRepeatable || signal?.aborted === true) throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
  return callOnce(pool, method, params, options, true);
}

function begin<C extends WorkerCall, M extends keyof WorkerCalls>(
  worker: Worker,
  create: (link: CallLink) => C,
  method: M,
  params: WorkerCalls[M]['params'],
): C {
  try {
    return worker.begin(create, method, params);
  } catch (error) {
    if (!(error instanceof FrameTooLarge)) throw error;
    throw new WorkerError({ kind: 'refused', code: 'invalid', message: error.message });
  }
}
