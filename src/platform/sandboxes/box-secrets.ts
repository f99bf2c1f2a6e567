// What is sealed of a box: its variables, the token of its proxy, and its policy with the values that it was resolved to. One of
// the files that open values of the vault and read secrets: the runtime and the sidecar get them.
import { randomBytes } from 'node:crypto';
import { Secret } from '../../base/secret.ts';
import type { BoxPolicy } from '../runtime/contract.ts';
import type { Reader, Transaction } from '../store/database.ts';
import type { SealedPlace, Vault } from '../vault/vault.ts';
import type { PreparedPolicy } from './box-policy.ts';
import type { BoxRow } from './boxes.ts';

type Kind = 'policy' | 'env' | 'token';
type Id = Pick<BoxRow, 'id' | 'workspace_id'>;

/** Moved to another box, or put back after a change, the bytes do not open. */
function placeOf({ id, workspace_id: workspaceId }: Id, kind: Kind, version: number): SealedPlace {
  return { workspaceId, purpose: `box_${kind}`, name: id, version };
}

/** The variables are set once: their version is always the first. */
const ENV_VERSION = 1;

export type StoredPolicy = Pick<PreparedPolicy, 'own' | 'resolved'>;

export type BoxSecrets = {
  /** Before the transaction that seals. */
  prepare(): Promise<void>;
  sealEnv(trx: Transaction, box: Id, vars: Readonly<Record<string, string>>): Promise<Buffer>;
  sealToken(trx: Transaction, box: Id, version: number, token: Secret): Promise<Buffer>;
  sealPolicy(trx: Transaction, box: Id, version: number, policy: StoredPolicy): Promise<Buffer>;
  openEnv(db: Reader, box: BoxRow): Promise<Readonly<Record<string, string>>>;
  openToken(db: Reader, box: Id & Pick<BoxRow, 'token_version' | 'sealed_token'>): Promise<Secret>;
  /** Undefined where no proxy_config was ever given. */
  openStored(db: Reader, box: BoxRow): Promise<StoredPolicy | undefined>;
  /** For the runtime. Without a document all connections are tunnelled. */
  openPolicy(db: Reader, box: BoxRow): Promise<BoxPolicy>;
};

export function createBoxSecrets(vault: Vault): BoxSecrets {
  const seal = (trx: Transaction, place: SealedPlace, value: string): Promise<Buffer> =>
    vault.seal(trx, place, new Secret(value));
  const open = async (db: Reader, place: SealedPlace, sealed: Buffer): Promise<Secret> => {
    const value = await vault.unsealValue(db, place, sealed);
    if (value === undefined)
      throw new Error(`the ${place.purpose} of ${place.name} was changed or moved: it does not open`);
    return value;
  };
  const openStored: BoxSecrets['openStored'] = async (db, box) => {
    if (box.sealed_policy === null) return undefined;
    const text = await open(db, placeOf(box, 'policy', box.policy_version), box.sealed_policy);
    return decodePolicy(text);
  };
  return {
    prepare: () => vault.prepare(),
    sealEnv: (trx, box, vars) => seal(trx, placeOf(box, 'env', ENV_VERSION), JSON.stringify(vars)),
    sealToken: (trx, box, version, token) => vault.seal(trx, placeOf(box, 'token', version), token),
    sealPolicy: (trx, box, version, policy) =>
      seal(trx, placeOf(box, 'policy', version), encodePolicy(policy)),
    async openEnv(db, box) {
      if (box.sealed_env === null) return {};
      const text = await open(db, placeOf(box, 'env', ENV_VERSION), box.sealed_env);
      return JSON.parse(text.reveal());
    },
    openToken: (db, box) => open(db, placeOf(box, 'token', box.token_version), box.sealed_token),
    openStored,
    async openPolicy(db, box) {
      const { resolved } = (await openStored(db, box)) ?? NO_POLICY;
      return { version: box.policy_version, ...resolved };
    },
  };
}

const NO_POLICY: Pick<StoredPolicy, 'resolved'> = { resolved: { document: {}, secrets: new Map() } };

/** Pairs, because a secret may have a name such as __proto__. */
function encodePolicy({ own, resolved: { document, secrets } }: StoredPolicy): string {
  const values = [...secrets].map(([name, value]) => [name, value.reveal()]);
  return JSON.stringify({ own, document, secrets: values });
}

function decodePolicy(text: Secret): StoredPolicy {
  const { own, document, secrets } = JSON.parse(text.reveal());
  const values = secrets as readonly (readonly [string, string])[];
  const known = new Map(values.map(([name, value]) => [name, new Secret(value)]));
  return { own, resolved: { document, secrets: known } };
}

/** 256 random bits, in characters that need no escape in a URL. */
export function mintProxyToken(): Secret {
  return new Secret(randomBytes(32).toString('base64url'));
}

/** As clients of a proxy send it: the user name says nothing. */
export function withProxyToken(proxyUrl: string, token: Secret): string {
  const url = new URL(proxyUrl);
  url.username = 'sandbox';
  url.password = token.reveal();
  return url.href.replace(/\/$/, '');
}
