// Services of boxes on the gateway: a request has a token for this port of this box before anything is dialled or started, and the box
// never sees it. What a browser gets in place of a token is sent by a page of the service alone.
import type { Duplex } from 'node:stream';
import { type Refusal, refuse } from '../../../gateway/refusal.ts';
import type { GatewayRequest, Grant, Target } from '../../../gateway/target.ts';
import { type Applicant, enter, partyOf } from '../../api/shares/admission.ts';
import { Held } from '../../api/shares/held.ts';
import { RuntimeError } from '../../runtime/contract.ts';
import type { DataPlaneParts } from '../gateway/data-plane.ts';
import type { Found, Place } from '../gateway/place.ts';
import { refuseConnection, toRefusal } from '../gateway/refusals.ts';
import { untilRunning } from '../gateway/running-box.ts';
import { withServiceToken, wrongToken } from './service-access.ts';
import { parseServicePlace, type ServicePlace, type ServiceSite } from './service-address.ts';
import { serviceCookie, serviceCookiesIn, toBoxCookies } from './service-cookies.ts';
import { passedFields, readServiceCredential, type ServiceCode } from './service-request.ts';
import { toClientFields } from './service-response.ts';
import { type Presented, redeemCode } from './service-tokens.ts';

export type ServiceParts = DataPlaneParts & {
  /** Known once the gateway listens. */
  site(): ServiceSite;
};

export function createServices(parts: ServiceParts): Place {
  return {
    name: 'service',
    find(request) {
      const place = parseServicePlace(parts.site(), request);
      if (place === undefined) return undefined;
      return place === 'unknown' ? refuse('target_not_found') : toFound(parts, request, place);
    },
  };
}

function toFound(parts: ServiceParts, request: GatewayRequest, place: ServicePlace): Found {
  const { boxId, port, prefix } = place;
  const connect = async (): Promise<Duplex | Refusal> => {
    try {
      return await (await parts.runtime()).connect(boxId, { port });
    } catch (error) {
      return refuseService(error);
    }
  };
  const target: Target = {
    name: `service ${boxId}`,
    prefix,
    address: { connect },
    responseFields: (fields) => toClientFields(place, fields),
  };
  return { target, authorize: () => authorize(parts, request, place) };
}

type Asked = {
  readonly request: GatewayRequest;
  readonly place: ServicePlace;
  readonly applicant: Applicant;
};

async function authorize(
  parts: ServiceParts,
  request: GatewayRequest,
  place: ServicePlace,
): Promise<Grant | Refusal> {
  const credential = readServiceCredential(place, request);
  if (credential.kind === 'none') return toRefusal(wrongToken());
  if (credential.kind === 'refused') return refuse(credential.code, { message: credential.message });
  const asked = { request, place, applicant: parts.toApplicant(request) };
  if (credential.kind === 'code') return signIn(parts, asked, credential);
  const held = new Held();
  try {
    await hold(parts, asked, { presented: credential, held });
    return {
      passes: passedFields(place, credential, request.values('authorization')),
      mapCookies: (value) => toBoxCookies(place, value),
      signal: held.signal,
      onEnd: () => held.end(),
    };
  } catch (error) {
    held.end();
    if (request.signal.aborted) return refuse('target_closed');
    return toRefusal(held.signal.aborted ? held.signal.reason : error);
  }
}

/** Until the request ends: the token, a turn, and the use of the box, which runs then. */
async function hold(
  parts: ServiceParts,
  { request, place, applicant }: Asked,
  { presented, held }: { readonly presented: Presented; readonly held: Held },
): Promise<void> {
  const access = withServiceToken(place, presented);
  const granted = await enter(parts.admission, access, applicant);
  held.until(parts.admission.streams, { access, granted, applicant });
  held.expireAfter(granted.token.leftMs, wrongToken());
  const party = partyOf(access, granted);
  if (party !== undefined) held.onEnd(await parts.requests.enter(party));
  const signal = AbortSignal.any([request.signal, held.signal]);
  const wanted = { id: place.boxId, path: `/services/${place.boxId}/${place.port}`, method: request.method };
  await untilRunning(parts, { ...wanted, access, granted, applicant, signal });
  held.onEnd(parts.use.begin(place.boxId));
}

/** A browser that followed `browser_url`: it gets a cookie for the code, once, and the same address without the code. */
async function signIn(parts: ServiceParts, asked: Asked, code: ServiceCode): Promise<Refusal> {
  const { place } = asked;
  const seeOther = { Location: `${place.origin}${code.target}`, 'Referrer-Policy': 'no-referrer' };
  try {
    const { text, leftMs } = await redeem(parts, asked, code);
    const cookie = serviceCookie(place, text, Math.floor(leftMs / 1000));
    return refuse('see_other', { fields: { ...seeOther, 'Set-Cookie': cookie } });
  } catch (error) {
    // Somebody who has used the code comes back to the same address.
    if (await hasCookie(parts, asked)) return refuse('see_other', { fields: seeOther });
    return toRefusal(error);
  }
}

async function redeem({ admission }: ServiceParts, { place, applicant }: Asked, code: ServiceCode) {
  const access = withServiceToken(place, code);
  const granted = await enter(admission, access, applicant);
  const party = partyOf(access, granted);
  if (party === undefined) throw new Error('a service token without an organization');
  const text = await admission.shares.writes(party).write((trx) => redeemCode(trx, granted.token, code.text));
  if (text === undefined) throw wrongToken();
  return { text, leftMs: granted.token.leftMs };
}

async function hasCookie(
  { admission }: ServiceParts,
  { request, place, applicant }: Asked,
): Promise<boolean> {
  const [text] = serviceCookiesIn(place, request.values('cookie'));
  if (text === undefined) return false;
  try {
    await enter(admission, withServiceToken(place, { kind: 'cookie', text }), applicant);
    return true;
  } catch {
    return false;
  }
}

/** Why there is no connection to the service. */
function refuseService(error: unknown): Refusal {
  if (!(error instanceof RuntimeError)) return refuseConnection(error);
  const { kind, message } = error;
  if (kind === 'not_listening') return refuse('target_unreachable', { message });
  if (kind === 'agent_lost') return refuse('target_closed', { message });
  if (kind === 'port_refused') return refuse('forbidden', { message, name: 'PermissionDenied' });
  if (kind === 'no_capacity') return refuse('overloaded', { message, retryAfterMs: RETRY_MS });
  return refuseConnection(error);
}

const RETRY_MS = 1_000;
