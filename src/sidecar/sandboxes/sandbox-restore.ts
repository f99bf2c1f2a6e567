// Brings sandboxes back after a restart: what is kept is read, put in force as it was, and its listeners opened. What is
// wrong with `default` stops the start; what is wrong with another sandbox keeps that one closed and is told, since the
// others, and the admin API that could mend it, should not wait for it.
import { InputError } from '../../base/input-error.ts';
import type { ListenAddress } from '../../base/listen-address.ts';
import type { SecretLookup } from '../../policy/compile.ts';
import { isExposed } from '../exposure.ts';
import { decodeSandboxState, describe } from '../state/sandbox-state.ts';
import { DEFAULT, type Entry, type Sandboxes, causeOf, inForceOf } from './sandboxes.ts';

/** Reads what the store holds. Throws an Error that says which sandbox cannot be restored, and why. */
export async function restoreSandboxes(sandboxes: Sandboxes, secrets: SecretLookup): Promise<void> {
  sandboxes.setOperators(secrets);
  for (const [id, content] of (await sandboxes.store?.readAll()) ?? []) restoreOne(sandboxes, id, content);
}

/** Opens the main listener and those of the sandboxes that came back. */
export async function openListeners(sandboxes: Sandboxes, at: ListenAddress): Promise<void> {
  const failure = await openAt(sandboxes, sandboxes.default, at);
  if (failure !== undefined) throw new Error(`the proxy ${failure}: change listen or SALLYPORT_LISTEN`);
  for (const entry of sandboxes.all()) if (entry.state.id !== DEFAULT) await startSandbox(sandboxes, entry);
}

/** Opens the doors of a sandbox, or notes why they stay closed. */
export async function startSandbox(sandboxes: Sandboxes, entry: Entry): Promise<void> {
  entry.failure ??= entryError(sandboxes, entry);
  const { listen, id } = entry.state;
  if (entry.failure === undefined && listen) entry.failure = await openAt(sandboxes, entry, listen);
  if (entry.failure === undefined) sandboxes.admit(entry);
  else sandboxes.shared.log.error({ sandbox: id, reason: entry.failure }, 'the sandbox stays closed');
}

function restoreOne(sandboxes: Sandboxes, id: string, content: string): void {
  const { config, log } = sandboxes.shared;
  const decoded = decodeSandboxState(content, { allowWildcards: config.allowWildcards });
  if (typeof decoded === 'string')
    throw new InputError(`the state of sandbox ${id} cannot be used: ${decoded}`);
  const { state, error } = decoded;
  if (state.id !== id) throw new InputError(`the state of sandbox ${id} is that of another`);
  const isDefault = id === DEFAULT;
  const entry = isDefault ? sandboxes.default : sandboxes.add(state);
  entry.state = state;
  entry.inForce = inForceOf(state);
  // The operator's file stands above what is kept.
  const isUnderFile = isDefault && config.proxyConfigFile !== undefined;
  const failure = error ?? (isUnderFile ? undefined : putBack(sandboxes, entry));
  if (failure === undefined) return;
  if (isUnderFile) log.warn({ sandbox: id, reason: failure }, 'the proxy_config that is kept cannot be used');
  else if (isDefault) throw new InputError(`the proxy_config of sandbox ${id} cannot be used: ${failure}`);
  else entry.failure = `its proxy_config cannot be used: ${failure}`;
}

/** As it was: with the values of then, even where they have been deleted since. */
function putBack(sandboxes: Sandboxes, entry: Entry): string | undefined {
  const { state } = entry;
  if (!state.proxyConfig) return undefined;
  const compiled = sandboxes.compile(state, state.proxyConfig, state.used);
  if (!compiled.ok) return describe(compiled.issues);
  sandboxes.adopt(entry, { next: state, policy: compiled.value });
  return undefined;
}

/** What was judged when it was made is judged by the config of now: it says who may come in, and by what. */
function entryError({ main, shared }: Sandboxes, { state }: Entry): string | undefined {
  const { listen, token } = state;
  if (listen && !token && isExposed(listen, shared.config))
    return 'others can reach its listener, which asks for no token: set allow_clients or auth: "none" again';
  if (!listen && token && main.admit(token))
    return 'its token lets clients of another sandbox in by the main listener: give it another one';
  return undefined;
}

/** What follows the name of whose listener it is; undefined once it is open. */
async function openAt(sandboxes: Sandboxes, entry: Entry, at: ListenAddress): Promise<string | undefined> {
  try {
    await sandboxes.openListener(entry, at);
    return undefined;
  } catch (error) {
    const where = `${at.host.includes(':') ? `[${at.host}]` : at.host}:${at.port}`;
    return `cannot be opened on ${where} (${causeOf(error)})`;
  }
}
