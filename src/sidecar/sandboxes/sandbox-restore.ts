// Restores sandboxes after a start: reads their stored states, activates their rules and opens their listeners. A problem
// with `default` stops the start. A problem with another sandbox disables only that one and is reported: the other
// sandboxes, and the admin API that can fix it, must not wait for it.
import { InputError } from '../../base/input-error.ts';
import { type ListenAddress, formatAddress } from '../../base/listen-address.ts';
import type { SecretLookup } from '../../policy/compile.ts';
import { isExposed } from '../listen-address.ts';
import { decodeSandboxState, describeIssues, loadAuthority } from '../state/sandbox-state.ts';
import { DEFAULT, rulesOf } from './sandbox-rules.ts';
import { type Entry, type Sandboxes, causeOf } from './sandboxes.ts';

/** Reads the stored states. Throws an Error that says which sandbox cannot be restored, and why. */
export async function restoreSandboxes(sandboxes: Sandboxes, secrets: SecretLookup): Promise<void> {
  sandboxes.rules.operatorSecrets = secrets;
  for (const [id, content] of await sandboxes.readStored()) restoreOne(sandboxes, id, content);
}

/** Opens the main listener and those of the restored sandboxes. */
export async function openListeners(sandboxes: Sandboxes, at: ListenAddress): Promise<void> {
  const failure = await openAt(sandboxes, sandboxes.default, at);
  if (failure !== undefined) {
    const stop = failure.includes('EADDRINUSE') ? 'stop that process, or ' : '';
    throw new Error(`the proxy ${failure}: ${stop}change listen or SALLYPORT_LISTEN`);
  }
  for (const entry of sandboxes.all()) if (entry.state.id !== DEFAULT) await startSandbox(sandboxes, entry);
}

/** Opens the sandbox's listener and admits clients, or records why not. */
export async function startSandbox(sandboxes: Sandboxes, entry: Entry): Promise<void> {
  entry.failure ??= entryError(sandboxes, entry);
  const { listen, id } = entry.state;
  if (entry.failure === undefined && listen) entry.failure = await openAt(sandboxes, entry, listen);
  if (entry.failure === undefined) sandboxes.admit(entry);
  else sandboxes.shared.log.error({ sandbox: id, reason: entry.failure }, 'the sandbox is disabled');
}

function restoreOne(sandboxes: Sandboxes, id: string, content: string): void {
  const { config, log } = sandboxes.shared;
  const { allowWildcards, reservedHost } = config;
  const decoded = decodeSandboxState(content, { allowWildcards, reservedHost });
  if (typeof decoded === 'string')
    throw new InputError(`the state of sandbox ${id} cannot be used: ${decoded}`);
  const { state, error } = decoded;
  if (state.id !== id) throw new InputError(`the state of sandbox ${id} belongs to another sandbox`);
  const isDefault = id === DEFAULT;
  const entry = isDefault ? sandboxes.default : sandboxes.add(state);
  entry.state = state;
  entry.active = rulesOf(state);
  // The operator's file replaces the stored rules.
  const hasFile = isDefault && config.proxyConfigFile !== undefined;
  const failure = error ?? (hasFile ? undefined : activateStored(sandboxes, entry));
  if (failure === undefined) return;
  if (hasFile) log.warn({ sandbox: id, reason: failure }, 'the stored proxy_config cannot be used');
  else if (isDefault) throw new InputError(`the proxy_config of sandbox ${id} cannot be used: ${failure}`);
  else entry.failure = `its proxy_config cannot be used: ${failure}`;
}

/** With the values that were active then, even if they have been deleted since. */
function activateStored(sandboxes: Sandboxes, entry: Entry): string | undefined {
  const { rules } = sandboxes;
  const { state } = entry;
  if (!state.proxyConfig) return undefined;
  const compiled = rules.compile(state, state.proxyConfig, state.used);
  if (!compiled.ok) return describeIssues(compiled.issues);
  rules.adopt(entry, { next: state, policy: compiled.value });
  return undefined;
}

/** Checks the listener, the token and the CA against the current config and clock, which may have changed since its creation. */
function entryError({ main, shared }: Sandboxes, { state }: Entry): string | undefined {
  const { listen, token, ca } = state;
  const authority = ca && loadAuthority(ca);
  if (authority && !('spkiSha256' in authority))
    return `its CA cannot be used (${describeIssues(authority)}): delete the sandbox and create it again`;
  if (listen && !token && isExposed(listen, shared.config))
    return 'its listener is reachable from other machines and needs no token: set allow_clients or auth: "none" again';
  if (!listen && token && main.admit(token))
    return 'its token belongs to another sandbox on the main listener: change the token';
  return undefined;
}

/** Undefined once the listener is open; otherwise a sentence without its subject. */
async function openAt(sandboxes: Sandboxes, entry: Entry, at: ListenAddress): Promise<string | undefined> {
  try {
    await sandboxes.openListener(entry, at);
    return undefined;
  } catch (error) {
    const code = causeOf(error);
    const reason = LISTEN_ERRORS[code];
    return `cannot listen on ${formatAddress(at)} (${code}${reason === undefined ? '' : `: ${reason}`})`;
  }
}

const LISTEN_ERRORS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there',
  EADDRNOTAVAIL: 'no network interface has this address',
  EACCES: 'this user may not use the port',
};
