// The authentication of a deployment: finds its object, which the SDK makes and which is recognized by its members alone, and
// serves the two methods that ask its handlers.
import { pathToFileURL } from 'node:url';
import { LoadError, type Methods } from '../method.ts';
import type { ModuleExport } from '../protocol/messages.ts';
import { authenticateBy } from './authentication.ts';
import { authorizeBy, type Handler } from './authorization.ts';

/** Where an object of the SDK has its handlers. */
const HANDLERS = '~handlerCache';

/** Throws a LoadError, also for an object without `authenticate`: everybody would be let in. */
export async function loadAuth(module: ModuleExport): Promise<{ readonly methods: Methods }> {
  const { authenticate, callbacks } = toHandlers(await load(module), module.source);
  return {
    methods: {
      'auth.authenticate': authenticateBy(authenticate),
      'auth.authorize': authorizeBy(callbacks),
    },
  };
}

type Handlers = {
  readonly authenticate: Handler;
  /** By `threads:read`, `threads`, `*:read` or `*`. */
  readonly callbacks: ReadonlyMap<string, Handler>;
};

async function load({ file, name, source }: ModuleExport): Promise<unknown> {
  let loaded: Readonly<Record<string, unknown>>;
  try {
    loaded = await import(pathToFileURL(file).href);
  } catch (error) {
    throw new LoadError('auth.path', `${source} cannot be loaded: ${messageOf(error)}`);
  }
  if (!Object.hasOwn(loaded, name))
    throw new LoadError('auth.path', `${source}: the file has no export ${name}`);
  // It may be a promise.
  return await loaded[name];
}

function toHandlers(auth: unknown, source: string): Handlers {
  const found = isObject(auth) ? auth[HANDLERS] : undefined;
  if (!isObject(found))
    throw new LoadError('auth.path', `${source} is no Auth object of the SDK: export new Auth()`);
  const { authenticate, callbacks = {} } = found;
  if (!isHandler(authenticate))
    throw new LoadError(
      'auth.path',
      `${source} has no authenticate handler, so that nobody could be let in: add .authenticate(…)`,
    );
  const byEvent = new Map<string, Handler>();
  for (const [event, callback] of Object.entries(isObject(callbacks) ? callbacks : {})) {
    if (!isHandler(callback))
      throw new LoadError('auth.path', `${source}: the handler of ${event} is no function`);
    byEvent.set(event, callback);
  }
  return { authenticate, callbacks: byEvent };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isHandler(value: unknown): value is Handler {
  return typeof value === 'function';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
