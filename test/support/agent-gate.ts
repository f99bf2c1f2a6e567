// Gates of an agent server for the tests of routes: open to everybody, or with handlers that run in this process as they would in
// a worker: what passes between both is JSON.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';
import { loadAuth } from '../../src/agent-worker/auth/load-auth.ts';
import type { CallContext, Methods } from '../../src/agent-worker/method.ts';
import { toFailure } from '../../src/agent-worker/thrown-error.ts';
import { createLog } from '../../src/base/log.ts';
import { createGate, type GateParts } from '../../src/platform/agent-server/access/deployment-gate.ts';
import type { Gate } from '../../src/platform/agent-server/access/gate.ts';
import type { HttpSettings } from '../../src/platform/agent-server/configuration/deployment.ts';
import type { GraphWorkers } from '../../src/platform/agent-server/workers/graph-workers.ts';
import { WorkerError } from '../../src/platform/agent-server/workers/worker-error.ts';
import { createScratch } from './scratch.ts';

export type TestGateOptions = Partial<
  Pick<GateParts, 'settings' | 'keys' | 'callers' | 'handlerTimeoutMs'>
> & {
  readonly auth?: Auth;
  readonly disableStudio?: boolean;
  readonly http?: Partial<HttpSettings>;
  /** In place of the handlers of `auth`. */
  readonly workers?: Pick<GraphWorkers, 'call'>;
  /** The lines of its log. */
  onLine?(line: string): void;
};

const HTTP: HttpSettings = {
  hasApp: false,
  enableCustomRouteAuth: false,
  disabled: new Set(),
  cors: {
    ...{ origins: [], originPattern: undefined, methods: undefined, headers: undefined, exposed: [] },
    ...{ allowsCredentials: false, maxAgeSeconds: 0 },
  },
  configurableHeaders: { includes: undefined, excludes: [] },
  mountPrefix: '',
  errorFormat: 'json',
};

/** Everybody sees everything. */
export function openGate(): Gate {
  return createTestGate({ settings: { access: 'none', isStudio: false }, workers: noWorkers });
}

/** By the handlers of `auth`. */
export function handlerGate(auth: Auth, options: TestGateOptions = {}): Gate {
  return createTestGate({ ...options, workers: options.workers ?? workersOf(auth) });
}

/** The token of a request is the identity; users see what is theirs, and what they create is theirs. */
export function ownerAuth(): Auth {
  return new Auth()
    .authenticate(async (request) => {
      const [, identity] = /^Bearer (\w+)$/.exec(request.headers.get('authorization') ?? '') ?? [];
      if (identity === undefined) throw new HTTPException(401, { message: 'Who?' });
      return identity;
    })
    .on('*', ({ value, user }) => {
      const changed = value as { metadata?: Record<string, unknown> | null };
      if ('metadata' in changed) (changed.metadata ??= {})['owner'] = user.identity;
      return { owner: user.identity };
    });
}

export function createTestGate(options: TestGateOptions): Gate {
  const {
    settings = { access: 'handler', isStudio: false },
    disableStudio = false,
    keys,
    callers,
    onLine,
  } = options;
  const { handlerTimeoutMs, workers = noWorkers } = options;
  return createGate({
    deployment: { auth: { disableStudio }, http: { ...HTTP, ...options.http } },
    ...{ settings, keys, callers, workers },
    log: createLog('info', { write: (line) => void onLine?.(line) }),
    ...(handlerTimeoutMs === undefined ? {} : { handlerTimeoutMs }),
  });
}

const noWorkers: Pick<GraphWorkers, 'call'> = {
  call: () => Promise.reject(new WorkerError('lost')),
};

export function workersOf(auth: Auth): Pick<GraphWorkers, 'call'> {
  const loading = load(auth);
  return {
    async call(method, params, { signal = new AbortController().signal } = {}) {
      const methods = await loading;
      const run = methods[method as 'auth.authenticate'];
      if (run === undefined) throw new Error(`no method ${method}`);
      const left = Promise.withResolvers<never>();
      signal.addEventListener('abort', () => left.reject(new WorkerError('lost')), { once: true });
      try {
        const called = run(JSON.parse(JSON.stringify(params)), { signal } as CallContext);
        const result: unknown = await Promise.race([called, left.promise]);
        return JSON.parse(JSON.stringify(result));
      } catch (error) {
        throw error instanceof WorkerError ? error : new WorkerError(toFailure(error, signal, true));
      }
    },
  };
}

async function load(auth: Auth): Promise<Methods> {
  await using scratch = await createScratch();
  const file = join(scratch.path, 'auth.mjs');
  const name = `auth${(loaded += 1)}`;
  Object.assign(globalThis, { [name]: auth });
  await writeFile(file, `export const auth = globalThis.${name};\n`);
  return (await loadAuth({ file, name: 'auth', source: './auth.ts:auth' })).methods;
}
let loaded = 0;
