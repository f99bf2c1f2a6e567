// One random secret of each kind that a fault may disclose. Every output byte of the process is searched for each.
import { randomBytes } from 'node:crypto';
import type { Canary } from '../e2e/canary-search.ts';
import { textCanary } from '../e2e/canary-values.ts';

export type ChaosSecrets = {
  readonly token: string;
  readonly opaque: string;
  readonly callbackKey: string;
  readonly minted: string;
  readonly adminToken: string;
  readonly stateKey: string;
};

export function createChaosSecrets(): ChaosSecrets {
  const made = (): string => randomBytes(24).toString('base64url');
  return {
    token: made(),
    opaque: made(),
    callbackKey: made(),
    minted: made(),
    adminToken: made(),
    stateKey: randomBytes(32).toString('base64'),
  };
}

export function toCanaries(secrets: ChaosSecrets): readonly Canary[] {
  return Object.entries(secrets).map(([name, value]) => textCanary(name, value));
}
