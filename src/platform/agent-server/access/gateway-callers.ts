// What the gateway of a deployment says of the caller of a request, which counts with its token alone: anybody else inside the
// deployment could write the same fields.
import type { RequestHead } from '../../../base/http/request-head.ts';
import type { Secret } from '../../../base/secret.ts';
import { AGENT_FIELDS } from '../contract.ts';
import type { KeyOwner } from './keys.ts';

type Head = Pick<RequestHead, 'values'>;

export type GatewayCallers = {
  /** Whom the platform has let in; undefined where the gateway has not asked it, or has not sent the request. */
  find(head: Head): KeyOwner | undefined;
  /** The runner has sent it. No request that passes the gateway has its field. */
  isRunner(head: Head): boolean;
};

const NAMES: ReadonlySet<string> = new Set(Object.values(AGENT_FIELDS));
const TEXT = /^[\x21-\x7e]{1,256}$/;

/** Of a field that no code of the deployment may see. `name` in lower case. */
export function isGatewayField(name: string): boolean {
  return NAMES.has(name);
}

export function createGatewayCallers(token: Secret): GatewayCallers {
  const hasToken = (head: Head, name: string): boolean => {
    const [given, ...more] = head.values(name);
    return given !== undefined && more.length === 0 && token.equals(given);
  };
  return {
    find(head) {
      if (!hasToken(head, AGENT_FIELDS.gateway)) return undefined;
      const [identity, ...others] = head.values(AGENT_FIELDS.caller);
      const [keyId, ...moreKeys] = head.values(AGENT_FIELDS.key);
      if (identity === undefined || keyId === undefined || others.length + moreKeys.length > 0)
        return undefined;
      return TEXT.test(identity) && TEXT.test(keyId) ? { identity, keyId } : undefined;
    },
    isRunner: (head) => hasToken(head, AGENT_FIELDS.control),
  };
}
