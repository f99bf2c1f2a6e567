// The egress rules of an operator who has allowed nothing.
import type { EgressRules } from '../../src/proxy/upstream/address-guard.ts';

export const closedEgress: EgressRules = {
  allowAllPrivate: false,
  allowLoopback: false,
  allowCidrs: [],
  privateByRule: 'tls',
  ports: new Set([80, 443]),
  injectCleartext: [],
  isOwnListener: () => false,
};
