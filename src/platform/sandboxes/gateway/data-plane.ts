// `/boxes/{id}/…`: the data plane of a box, for callers of the API and by the same keys. Nothing is dialled before the key, the
// permission and the workspace are known; a session of a browser is no key.
import type { Duplex } from 'node:stream';
import { type Refusal, refuse } from '../../../gateway/refusal.ts';
import type { GatewayRequest, Grant, Target } from '../../../gateway/target.ts';
import { inWorkspace } from '../../api/access.ts';
import { type Applicant, enter, partyOf } from '../../api/shares/admission.ts';
import type { FairQueue } from '../../api/shares/fair-queue.ts';
import { Held } from '../../api/shares/held.ts';
import type { Runtime } from '../../runtime/contract.ts';
import type { BoxUse } from './box-use.ts';
import type { Found, Place } from './place.ts';
import { refuseConnection, toRefusal } from './refusals.ts';
import { dataPlaneFields } from './response-fields.ts';
import { type RunningBoxParts, untilRunning } from './running-box.ts';

export type DataPlaneParts = RunningBoxParts & {
  readonly use: BoxUse;
  /** Requests that run, WebSockets included. */
  readonly requests: FairQueue;
  /** Opens what runs boxes on this machine, the first time. */
  runtime(): Promise<Pick<Runtime, 'connect'>>;
  toApplicant(request: GatewayRequest): Applicant;
};

export function createDataPlane(parts: DataPlaneParts): Place {
  return {
    name: 'data-plane',
    find(request) {
      const [, prefix, id, path = ''] = PATH.exec(request.target) ?? [];
      if (prefix === undefined || id === undefined) return undefined;
      return toFound(parts, request, { prefix, id, path });
    },
  };
}

/** As the box host writes ids, so that one box has one path. */
const PATH = /^(\/boxes\/([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}))(\/[^?]*)?(?:\?|$)/;

type Named = { readonly prefix: string; readonly id: string; readonly path: string };

function toFound(parts: DataPlaneParts, request: GatewayRequest, named: Named): Found {
  const { prefix, id } = named;
  const connect = async (): Promise<Duplex | Refusal> => {
    try {
      return await (await parts.runtime()).connect(id, 'data-plane');
    } catch (error) {
      return refuseConnection(error);
    }
  };
  const target: Target = {
    ...{ name: `data-plane ${id}`, prefix, address: { connect }, responseFields: dataPlaneFields },
  };
  return { target, authorize: () => authorize(parts, request, named) };
}

/** What reads files. Commands, uploads and all that is not known here change the box. */
const READING: ReadonlySet<string> = new Set(['/download', '/glob', '/grep']);
const KNOWN: ReadonlySet<string> = new Set([...READING, '/execute', '/execute/ws', '/upload']);
const read = inWorkspace('sandboxes:read');
const manage = inWorkspace('sandboxes:manage');

async function authorize(
  parts: DataPlaneParts,
  request: GatewayRequest,
  { id, path }: Named,
): Promise<Grant | Refusal> {
  const held = new Held();
  try {
    const applicant = parts.toApplicant(request);
    const access = READING.has(path) ? read : manage;
    const granted = await enter(parts.admission, access, applicant);
    held.until(parts.admission.streams, { access, granted, applicant });
    const party = partyOf(access, granted);
    if (party !== undefined) held.onEnd(await parts.requests.enter(party));
    const signal = AbortSignal.any([request.signal, held.signal]);
    const known = KNOWN.has(path) ? path : '';
    const wanted = { id, path: `/boxes/${id}${known}`, method: request.method, access, granted, applicant };
    await untilRunning(parts, { ...wanted, signal });
    held.onEnd(parts.use.begin(id));
    return { signal: held.signal, onEnd: () => held.end() };
  } catch (error) {
    held.end();
    // Nobody reads it.
    if (request.signal.aborted) return refuse('target_closed');
    return toRefusal(held.signal.aborted ? held.signal.reason : error);
  }
}
