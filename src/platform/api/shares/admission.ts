// Who is let in, and how much of the process they may use. One for all listeners of a process: wrong keys, rates and turns are
// counted together, and whoever loses access loses it everywhere.
import type { Log } from '../../../base/log.ts';
import type { Authenticator } from '../../identity/authentication.ts';
import type { RequestPools } from '../../store/pools.ts';
import type { Access, Entry, Grant } from '../access.ts';
import type { ApiRequest } from '../api-request.ts';
import type { TenantLimits } from '../limits.ts';
import { createAuthenticationTurns, type TakeTurn } from './authentication-turns.ts';
import type { Party } from './fair-queue.ts';
import { createTenantShares, type TenantShares } from './tenant-shares.ts';
import { createOpenStreams, type OpenStreams } from '../stream/open-streams.ts';

export type Admission = {
  readonly pools: RequestPools;
  readonly authenticator: Authenticator;
  readonly shares: TenantShares;
  /** What runs until its access ends. */
  readonly streams: OpenStreams;
  readonly takeTurn: TakeTurn;
};

export type AdmissionParts = Pick<Admission, 'pools' | 'authenticator'> & {
  readonly log: Log;
  readonly limits: TenantLimits;
};

export function createAdmission(parts: AdmissionParts): Admission {
  const { pools, authenticator, limits } = parts;
  const shares = createTenantShares(pools, limits);
  const takeTurn = createAuthenticationTurns({
    places: pools.authentication.size,
    hasFailedOften: (peer) => authenticator.hasFailedOften(peer),
  });
  return {
    ...{ pools, authenticator, shares },
    streams: createOpenStreams(parts),
    takeTurn: (peer, work) => shares.responses.during(UNKNOWN, () => takeTurn(peer, work)),
  };
}

/** The organization of a request whose caller is looked up. */
const UNKNOWN = '';

/** What of a request says who sent it. */
export type Applicant = Pick<ApiRequest, 'head' | 'client' | 'requestId' | 'origin'>;

export type Entrance = {
  /** Called as soon as the caller is known. */
  onCaller?(partly: Grant): void;
  /** The transaction of the request confirms the grant before anything is done with it. */
  readonly isConfirmed?: boolean;
};

/** Authenticates and authorizes, within the rate of the caller. */
export async function enter<G extends Grant>(
  { pools, authenticator, shares, takeTurn }: Admission,
  access: Access<G>,
  applicant: Applicant,
  { onCaller = () => undefined, isConfirmed = false }: Entrance = {},
): Promise<G> {
  let isAdmitted = false;
  const admit = (party: Party | undefined): void => {
    if (party === undefined || isAdmitted) return;
    isAdmitted = true;
    shares.admit(party);
  };
  const entry = toEntry(applicant, {
    db: pools.authentication.db,
    authenticator,
    // Before anything else is done for the caller: what is rejected then counts too.
    onCaller(partly) {
      onCaller(partly);
      admit(partyOfCaller(partly));
    },
  });
  const isLookedUp = access.schemes.length > 0 && access.isOffDatabase !== true;
  const lookUp = (): Promise<G> =>
    isLookedUp ? takeTurn(entry.peer, () => access.enter(entry)) : access.enter(entry);
  const granted = (isConfirmed ? access.recall?.(entry) : undefined) ?? (await lookUp());
  admit(partyOf(access, granted));
  return granted;
}

export function toEntry(
  { head, client, requestId, origin }: Applicant,
  {
    db,
    authenticator,
    onCaller = () => undefined,
  }: Pick<Entry, 'db' | 'authenticator'> & Partial<Pick<Entry, 'onCaller'>>,
): Entry {
  return { head, peer: client.host ?? '', client, requestId, origin, db, authenticator, onCaller };
}

/** Undefined for what anybody may call: it uses nothing that is shared. */
export function partyOf<G extends Grant>(access: Access<G>, granted: G): Party | undefined {
  if (granted.party !== undefined) return granted.party;
  const organization = granted.organizationId ?? granted.workspaceId;
  return organization === undefined ? undefined : { organization, key: access.callerOf(granted) };
}

export function partyOfCaller(known: Grant | undefined): Party | undefined {
  return known?.caller && { organization: known.caller.organization.id, key: known.caller.keyId };
}
