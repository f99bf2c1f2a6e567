// Creates a sandbox from a document: everything is validated and compiled before anything is opened, and undone if it
// cannot be stored.
import { randomBytes } from 'node:crypto';
import { parseSecretChanges } from '../../admin/secret-changes.ts';
import { type Change, type Problem, type Refused, done, refused } from '../../admin/target.ts';
import { type Issue, prefixed } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import type { Admission } from '../../proxy/accept/admission.ts';
import type { ProxyContext } from '../../proxy/context.ts';
import { isLoopbackListen } from '../listen-address.ts';
import {
  type SandboxAuthority,
  type SandboxState,
  loadAuthority,
  newSandboxState,
} from '../state/sandbox-state.ts';
import { type HandedOverListener, ListenerRejection, placeDocument } from './handed-over-listeners.ts';
import { chooseAuthority } from './sandbox-authority.ts';
import { type SandboxDocument, type WantedToken, parseSandboxDocument } from './sandbox-document.ts';
import type { Invalid, Prepared } from './sandbox-rules.ts';
import { type Entry, type Sandboxes, causeOf } from './sandboxes.ts';

/** A sandbox after a change; `token`: one that was generated, in plaintext, for the one response that shows it. */
export type ChangedEntry = {
  readonly entry: Entry;
  readonly token: string | undefined;
  readonly warnings: readonly Issue[];
};

const MAX_SANDBOXES = 1_000;

export type CreationSteps = {
  /** Validates and compiles a proxy_config without effect. */
  prepare(state: SandboxState, proxyConfig: unknown): Promise<Change<Prepared>>;
  /** Makes a state durable, or says why it cannot. */
  save(state: SandboxState): Promise<Problem | undefined>;
};

export async function createFromDocument(
  sandboxes: Sandboxes,
  document: unknown,
  { prepare, save }: CreationSteps,
): Promise<Change<ChangedEntry>> {
  const placed = placeDocument(document, sandboxes.handedOver);
  if ('ok' in placed) return placed;
  const parsed = parseSandboxDocument(placed.document, sandboxes.shared.config);
  if (!parsed.ok) return refused({ kind: 'invalid', issues: parsed.issues });
  const { id = `sandbox-${randomBytes(8).toString('hex')}` } = parsed.value;
  if (sandboxes.get(id)) return refused({ kind: 'exists', message: `The sandbox ${id} exists already` });
  if (sandboxes.all().length > MAX_SANDBOXES)
    return refused({ kind: 'full', message: `There are ${MAX_SANDBOXES} sandboxes: delete one first` });
  const plan = planSandbox(id, parsed.value, sandboxes);
  if (!plan.ok) return refused({ kind: 'invalid', issues: plan.issues });
  const { proxyConfig } = parsed.value;
  const prepared = proxyConfig === undefined ? undefined : await prepare(plan.state, proxyConfig);
  if (prepared?.ok === false) return prepared;
  const taken = takeListener(sandboxes, placed.reference);
  if (taken && 'ok' in taken) return taken;
  const entry = sandboxes.add(plan.state, taken);
  // Rules first, then clients.
  if (prepared) sandboxes.rules.adopt(entry, prepared.value);
  const problem = (await openListener(entry, sandboxes)) ?? (await save(entry.state));
  if (problem) {
    await sandboxes.drop(entry);
    return refused(problem);
  }
  sandboxes.admit(entry);
  const ofRules = prefixed(prepared?.value.warnings ?? [], ['proxy_config']);
  const warnings = [...ofRules, ...warningsOf(entry, sandboxes)];
  return done({ entry, token: plan.token?.generated, warnings });
}

type Plan = {
  readonly ok: true;
  readonly state: SandboxState;
  readonly token: IssuedToken | undefined;
};

/** Everything but the rules that can be checked before anything is opened. */
function planSandbox(id: string, document: SandboxDocument, sandboxes: Sandboxes): Plan | Invalid {
  const { limits, listen, workspaceSecrets } = document;
  const given = workspaceSecrets === undefined ? undefined : parseSecretChanges(workspaceSecrets);
  if (given && !given.ok) return { ok: false, issues: prefixed(given.issues, ['workspace_secrets']) };
  // A listener of its own accepts no other sandbox's token.
  const token = issueToken(document.token, listen ? undefined : sandboxes.main);
  if (token === 'taken') return { ok: false, issues: [TOKEN_TAKEN] };
  const secrets = new Map(
    [...(given?.value ?? [])].flatMap(([name, value]) => (value ? [[name, value]] : [])),
  );
  const chosen = chooseAuthority(document.ca);
  if (!chosen.ok) return chosen;
  const ca = chosen.value;
  if (ca && isTaken(ca, sandboxes)) return { ok: false, issues: [CA_TAKEN] };
  const state = newSandboxState(id, { listen, token: token?.secret, limits, secrets, ...(ca && { ca }) });
  return { ok: true, state, token };
}

export type IssuedToken = { readonly secret: Secret; readonly generated: string | undefined };

/** Undefined: no token is wanted. `taken`: in `admission` it already belongs to a sandbox other than `own`. */
export function issueToken(
  wanted: WantedToken,
  admission?: Admission,
  own?: ProxyContext,
): IssuedToken | undefined | 'taken' {
  if (wanted === undefined) return undefined;
  if (wanted === 'generate') {
    const generated = randomBytes(32).toString('base64url');
    return { secret: new Secret(generated), generated };
  }
  const holder = admission?.admit(wanted);
  return holder === undefined || holder === own ? { secret: wanted, generated: undefined } : 'taken';
}

export const TOKEN_TAKEN: Issue = {
  loc: ['token'],
  msg: 'This token is in use: send another one, or "generate"',
  type: 'value_error',
};

/** With the CA of another sandbox, the clients of one would take the listener of the other for theirs. */
function isTaken(ca: SandboxAuthority, sandboxes: Sandboxes): boolean {
  const loaded = loadAuthority(ca);
  return 'spkiSha256' in loaded && sandboxes.shared.trust.ownKeys.has(loaded.spkiSha256);
}

const CA_TAKEN: Issue = {
  loc: ['ca'],
  msg: 'This is the CA of another sandbox: send one for each',
  type: 'value_error',
};

/** Opens the sandbox's own listener, if it has one, and stores the port that was opened. */
async function openListener(entry: Entry, sandboxes: Sandboxes): Promise<Problem | undefined> {
  const { listen } = entry.state;
  if (!listen) return undefined;
  try {
    await sandboxes.openListener(entry, listen);
  } catch (error) {
    if (entry.handedOver) return rejectionOf(error);
    const msg = `Cannot listen on this address (${causeOf(error)}): use another port, or port 0 for any`;
    return { kind: 'invalid', issues: [{ loc: ['listen'], msg, type: 'value_error' }] };
  }
  const { port = 0 } = entry.listener ?? {};
  entry.state = { ...entry.state, listen: { host: listen.host, port } };
  return undefined;
}

/** Undefined: the document names no listener of the parent process. */
function takeListener(
  { handedOver }: Sandboxes,
  reference: string | undefined,
): HandedOverListener | Refused | undefined {
  if (reference === undefined) return undefined;
  try {
    return handedOver?.take(reference);
  } catch (error) {
    return refused(rejectionOf(error));
  }
}

function rejectionOf(error: unknown): Problem {
  const reason =
    error instanceof ListenerRejection ? error.message : `it does not listen (${causeOf(error)})`;
  return { kind: 'listener_rejected', message: `The listener that was handed over is not used: ${reason}` };
}

function warningsOf({ state }: Entry, { main, shared }: Sandboxes): Issue[] {
  const { listen } = state;
  if (listen) {
    const { allowLoopback } = shared.config.egress;
    if (allowLoopback !== undefined || isLoopbackListen(listen) || !isLoopbackListen(shared.config.listen))
      return [];
    return [{ loc: ['listen'], msg: NO_LOOPBACK, type: 'loopback_closed' }];
  }
  return main.admit('none') ? [{ loc: ['token'], msg: OPEN_LISTENER, type: 'open_listener' }] : [];
}

const NO_LOOPBACK =
  'This listener is reachable from other machines, so no sandbox can connect to loopback any more unless ' +
  'egress.allow_private lists it';
const OPEN_LISTENER =
  'Clients without a token on the main listener belong to "default": set auth.token_file to require a token';
