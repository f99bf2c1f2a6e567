// The user of the studio, who sees everything unless a handler decides otherwise. A request is theirs by a header field, which
// anybody can send: it counts with a valid key, or on loopback where the operator has allowed that.
import type { AgentUser } from '../../../agent-worker/protocol/calls.ts';
import { DomainError } from '../../../base/domain-error.ts';
import type { Entry } from '../../api/access.ts';
import type { CorsSettings } from '../configuration/cors-document.ts';
import type { GatewayCallers } from './gateway-callers.ts';
import type { KeyPort } from './keys.ts';
import { isKnownOrigin, isLoopbackAddress, isLoopbackHost } from './loopback.ts';

export type StudioRules = {
  /** `disable_studio_auth` */
  readonly isDisabled: boolean;
  /** `--studio` */
  readonly isLocal: boolean;
  /** Pages of other origins count on loopback only where the configuration names their origin. */
  readonly cors: Pick<CorsSettings, 'origins' | 'originPattern'>;
  readonly keys: KeyPort | undefined;
  /** Of a deployment: its gateway has checked the key. */
  readonly callers?: GatewayCallers | undefined;
};

const IDENTITY = 'langgraph-studio-user';
const KIND = 'StudioUser';

export const STUDIO_USER: AgentUser = {
  kind: KIND,
  identity: IDENTITY,
  display_name: IDENTITY,
  is_authenticated: true,
  permissions: [],
};

/** By what public checks for the studio look at. */
export function isStudioUser({ identity, kind }: AgentUser): boolean {
  return identity === IDENTITY || kind === KIND;
}

/** False where the field does not count: the handler decides then, as if it had not been sent. */
export async function isStudio(rules: StudioRules, entry: Entry): Promise<boolean> {
  const { isDisabled, isLocal, keys, callers, cors } = rules;
  const { head } = entry;
  if (isDisabled || head.field('x-auth-scheme')?.toLowerCase() !== 'langsmith') return false;
  if (callers?.find(head) !== undefined) return true;
  if (isLocal && isOnLoopback(entry) && isKnownOrigin(head.field('origin'), cors)) return true;
  const key = head.field('x-api-key');
  if (key === undefined || keys === undefined) return false;
  if ((await keys.find(key)) !== undefined) return true;
  entry.authenticator.countFailure(entry.peer, new DomainError('unauthenticated', 'wrong key'));
  return false;
}

/** By both ends. */
function isOnLoopback({ peer, head }: Pick<Entry, 'peer' | 'head'>): boolean {
  return isLoopbackAddress(peer) && isLoopbackHost(head) && head.field('x-forwarded-for') === undefined;
}
