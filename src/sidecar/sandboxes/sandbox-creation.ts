// Makes a sandbox from a document: everything is read and compiled before anything is opened, and taken back if it
// cannot be kept.
import { randomBytes } from 'node:crypto';
import { parseSecretChanges } from '../../admin/secret-changes.ts';
import { type Change, type Problem, done, refused } from '../../admin/target.ts';
import type { Issue, Loc } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { isLoopbackListen } from '../listen-address.ts';
import { type SandboxDocument, parseSandboxDocument } from './sandbox-document.ts';
import { type SandboxState, newSandboxState } from '../state/sandbox-state.ts';
import { type GivenToken, TOKEN_TAKEN, givenToken } from './sandbox-token.ts';
import { type Entry, type Prepared, type Sandboxes, causeOf } from './sandboxes.ts';

/** A sandbox as it is now; `token` is one that was made for it. */
export type Made = {
  readonly entry: Entry;
  readonly token: string | undefined;
  readonly warnings: readonly Issue[];
};

const MAX_SANDBOXES = 1_000;

/** `keep` makes a state durable, or says why it could not. */
export function createSandboxMaker(
  sandboxes: Sandboxes,
  keep: (state: SandboxState) => Promise<Problem | undefined>,
): (document: unknown) => Promise<Change<Made>> {
  return async (input) => {
    const parsed = parseSandboxDocument(input, sandboxes.shared.config);
    if (!parsed.ok) return refused({ kind: 'invalid', issues: parsed.issues });
    const { id = `sandbox-${randomBytes(8).toString('hex')}` } = parsed.value;
    if (sandboxes.get(id)) return refused({ kind: 'exists', message: `There is a sandbox ${id} already` });
    if (sandboxes.all().length > MAX_SANDBOXES)
      return refused({ kind: 'full', message: `There are ${MAX_SANDBOXES} sandboxes: delete one first` });
    const plan = planSandbox(id, parsed.value, sandboxes);
    if (!plan.ok) return refused({ kind: 'invalid', issues: plan.issues });
    const entry = sandboxes.add(plan.state);
    // Rules first, then clients.
    if (plan.prepared) sandboxes.adopt(entry, plan.prepared);
    const problem = (await open(entry, sandboxes)) ?? (await keep(entry.state));
    if (problem) {
      await sandboxes.drop(entry);
      return refused(problem);
    }
    sandboxes.admit(entry);
    const ofRules = below('proxy_config', plan.prepared?.warnings ?? []);
    const warnings = [...ofRules, ...warningsOf(entry, sandboxes)];
    return done({ entry, token: plan.token?.reported, warnings });
  };
}

type Plan = {
  readonly ok: true;
  readonly state: SandboxState;
  readonly prepared: Prepared | undefined;
  readonly token: GivenToken | undefined;
};
type Invalid = { readonly ok: false; readonly issues: readonly Issue[] };

/** Everything that can be known to be wrong before anything is opened. */
function planSandbox(id: string, document: SandboxDocument, sandboxes: Sandboxes): Plan | Invalid {
  const { limits, listen, proxyConfig, workspaceSecrets } = document;
  const given = workspaceSecrets === undefined ? undefined : parseSecretChanges(workspaceSecrets);
  if (given && !given.ok) return { ok: false, issues: below('workspace_secrets', given.issues) };
  // A listener of its own knows no other sandbox's token.
  const token = givenToken(document.token, listen ? undefined : sandboxes.main);
  if (token === 'taken') return { ok: false, issues: [TOKEN_TAKEN] };
  const secrets = new Map(
    [...(given?.value ?? [])].filter((pair): pair is [string, Secret] => pair[1] !== null),
  );
  const state = newSandboxState(id, { listen, token: token?.secret, limits, secrets });
  if (proxyConfig === undefined) return { ok: true, state, prepared: undefined, token };
  const prepared = sandboxes.prepare(state, proxyConfig);
  if (!prepared.ok) return { ok: false, issues: below('proxy_config', prepared.issues) };
  return { ok: true, state, prepared, token };
}

/** Opens its own listener, if it has one, and notes the port that it got. */
async function open(entry: Entry, sandboxes: Sandboxes): Promise<Problem | undefined> {
  const { listen } = entry.state;
  if (!listen) return undefined;
  try {
    await sandboxes.openListener(entry, listen);
  } catch (error) {
    const msg = `This address cannot be listened on (${causeOf(error)}): choose another port, or port 0 for any`;
    return { kind: 'invalid', issues: [{ loc: ['listen'], msg, type: 'value_error' }] };
  }
  const { port = 0 } = entry.listener ?? {};
  entry.state = { ...entry.state, listen: { host: listen.host, port } };
  return undefined;
}

function warningsOf({ state }: Entry, { main, shared }: Sandboxes): Issue[] {
  const { listen } = state;
  if (listen) {
    const { allowLoopback } = shared.config.egress;
    if (allowLoopback !== undefined || isLoopbackListen(listen) || !isLoopbackListen(shared.config.listen))
      return [];
    return [{ loc: ['listen'], msg: NO_LOOPBACK, type: 'loopback_closed' }];
  }
  if (main.admit('none') === undefined) return [];
  const msg =
    'Whoever shows no token on the main listener is a client of "default": set auth.token_file to ask everybody for one';
  return [{ loc: ['token'], msg, type: 'open_listener' }];
}

const NO_LOOPBACK =
  'Since others reach this listener, no sandbox reaches loopback any more, unless egress.allow_private lists it';

function below(key: string, issues: readonly Issue[]): readonly Issue[] {
  return issues.map((issue): Issue => ({ ...issue, loc: [key, ...issue.loc] satisfies Loc }));
}
