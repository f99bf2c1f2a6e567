// The rules of the proxy of one deployment while it runs: read when it begins and when they may have changed. One of the files that read
// the values of secrets, for its workloads.
import type { Secret } from '../../../base/secret.ts';
import type { Reader } from '../../store/database.ts';
import type { Vault } from '../../vault/vault.ts';
import type { WorkloadPolicy } from '../instances/agent-process.ts';
import { type DeploymentPolicy, type PolicyOwner, readPolicy } from './deployment-policy.ts';

export class RunningPolicy {
  readonly #source: { readonly vault: Vault; readonly db: Reader };
  #resolved: DeploymentPolicy | undefined;
  #version = 0;
  #identity = '';

  constructor(source: { readonly vault: Vault; readonly db: Reader }) {
    this.#source = source;
  }

  /** For a workload; it has the values of secrets. Throws an Error before the first `read`. */
  get current(): WorkloadPolicy {
    if (this.#resolved === undefined) throw new Error('the rules of a deployment were not read');
    const { document, secrets } = this.#resolved;
    return {
      ...{ version: this.#version, document: document as Readonly<Record<string, unknown>> },
      secrets: revealed(secrets),
    };
  }

  /** Of what was read last; another number is another policy. */
  get version(): number {
    return this.#version;
  }

  /** Of what was read last, for the log of the deployment. */
  get problems(): readonly string[] {
    return this.#resolved?.problems ?? [];
  }

  /** Returns whether it is another one now. Rejects as `readPolicy`; what was there stays. */
  async read(owner: PolicyOwner): Promise<boolean> {
    const resolved = await readPolicy(this.#source, owner);
    const identity = JSON.stringify([resolved.document, ...fingerprints(resolved.secrets)]);
    if (identity === this.#identity) return false;
    this.#identity = identity;
    this.#resolved = resolved;
    this.#version += 1;
    return true;
  }
}

function fingerprints(secrets: ReadonlyMap<string, Secret>): readonly string[] {
  return [...secrets].map(([name, value]) => `${name} ${value.fingerprint()}`);
}

function revealed(secrets: ReadonlyMap<string, Secret>): Readonly<Record<string, string>> {
  return Object.fromEntries([...secrets].map(([name, value]) => [name, value.reveal()]));
}
