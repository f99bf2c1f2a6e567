// One random secret of each kind that a proxy holds: it can only be found where it leaked.
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
 * With characters that encodings change: quotes, a backslash, a percent sign, and what base64 encodes as `+` and `/`.
 * Its first letter is invalid at the start of a JSON value, and JSON.parse quotes what follows.
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

/** The private number of the key, and the middle line of its file: the rest is equal in all keys or public. */
export function keyCanaries(pem: string): readonly Canary[] {
  const { d = '' } = createPrivateKey(pem).export({ format: 'jwk' });
  const [, , middle = ''] = pem.split('\n');
  return [
    { name: 'caKey', value: Buffer.from(d, 'base64url'), isText: false },
    { name: 'caKeyLine', value: Buffer.from(middle), isText: false },
  ];
}
