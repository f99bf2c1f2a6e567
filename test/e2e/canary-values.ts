// One secret of each kind that a proxy holds, made of chance, so that none of them is anywhere unless it leaked.
import { createPrivateKey, randomBytes } from 'node:crypto';
import type { Canary } from './canary-search.ts';

export type CanaryValues = {
  readonly opaque: string;
  readonly fileSecret: string;
  readonly variableSecret: string;
  readonly adminSecret: string;
  readonly callbackHeader: string;
  readonly callbackResult: string;
  readonly proxyToken: string;
  readonly adminToken: string;
  readonly wrongAdminToken: string;
  readonly sandboxToken: string;
  readonly changedToken: string;
  readonly stateKey: Buffer;
  readonly wrongStateKey: Buffer;
};

export function createCanaryValues(): CanaryValues {
  return {
    opaque: awkward(),
    fileSecret: awkward(),
    variableSecret: awkward(),
    adminSecret: awkward(),
    callbackHeader: awkward(),
    callbackResult: awkward(),
    proxyToken: awkward(),
    adminToken: awkward(),
    wrongAdminToken: awkward(),
    sandboxToken: plain(),
    changedToken: plain(),
    stateKey: randomBytes(32),
    wrongStateKey: randomBytes(32),
  };
}

/**
 * With what encodings write in another way: quotes, a backslash, a percent sign, and what base64 makes `+` and `/` of.
 * Where JSON wants a value its first letter is a fault, and JSON.parse quotes what follows.
 */
function awkward(): string {
  const odd = ['"\\%', '~>>', '??+', '/=&'];
  return `k${odd.map((signs) => `${plain(6)}${signs}`).join('')}${plain(6)}`;
}

function plain(bytes: number = 18): string {
  return randomBytes(bytes).toString('base64url');
}

export function toCanaries(values: CanaryValues): readonly Canary[] {
  return Object.entries(values).map(([name, value]: [string, string | Buffer]) =>
    typeof value === 'string' ? textCanary(name, value) : { name, value, isText: false },
  );
}

export function textCanary(name: string, value: string): Canary {
  return { name, value: Buffer.from(value), isText: true };
}

/** The number that makes the key secret, and the middle line of its file: all else is alike in all keys, or public. */
export function keyCanaries(pem: string): readonly Canary[] {
  const { d = '' } = createPrivateKey(pem).export({ format: 'jwk' });
  const [, , middle = ''] = pem.split('\n');
  return [
    { name: 'caKey', value: Buffer.from(d, 'base64url'), isText: false },
    { name: 'caKeyLine', value: Buffer.from(middle), isText: false },
  ];
}
