// The sandboxes of workloads: one for each, in the sidecar of its group. A sidecar that ends by itself is started again, with the policies
// that were in effect. Whatever a sidecar refuses is reported to the workload that asked.
import { rm, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import { Secret } from '../../base/secret.ts';
import type { BoxAuthority } from '../../box-host/box-authorities.ts';
import { RecordBook } from '../../box-host/sidecars/record-book.ts';
import type { SidecarProgram } from '../../box-host/sidecars/sidecar-process.ts';
import { Sidecars } from '../../box-host/sidecars/sidecars.ts';
import { createCertificateAuthority } from '../../tls/certificate-authority.ts';
import { type NewProxy, WorkloadProxy } from './workload-proxy.ts';

export type ProxiesOptions = {
  /** Private to this user. The sidecars of a process before are gone with it, and their files are removed. */
  readonly directory: string;
  readonly program: SidecarProgram;
  readonly log: Log;
};

export class WorkloadProxies {
  readonly #options: ProxiesOptions;
  readonly #records = new RecordBook();
  readonly #sidecars: Sidecars;
  readonly #proxies = new Map<string, WorkloadProxy>();
  readonly #end = new AbortController();
  readonly #reading: Promise<void>;

  private constructor(options: ProxiesOptions) {
    const { directory, program, log } = options;
    this.#options = options;
    const onLost = (): void => {
      for (const proxy of this.#proxies.values()) void proxy.renew();
    };
    this.#sidecars = new Sidecars({
      ...{ directory, program, records: this.#records, log, onLost },
      removesFiles: true,
    });
    this.#reading = this.#readRecords();
  }

  static async open(options: ProxiesOptions): Promise<WorkloadProxies> {
    await removeSidecarFiles(options.directory);
    return new WorkloadProxies(options);
  }

  /** Rejects with a BoxError if the sidecar does not start or rejects the policy. */
  async create(given: NewProxy): Promise<WorkloadProxy> {
    const proxy = new WorkloadProxy(given, this.#sidecars, createAuthority(), this.#options.log);
    this.#proxies.set(given.id, proxy);
    try {
      await proxy.open();
      return proxy;
    } catch (error) {
      await this.remove(given.id);
      throw error;
    }
  }

  async remove(id: string): Promise<void> {
    // Its last records come while it is closed.
    await this.#proxies
      .get(id)
      ?.close()
      .finally(() => this.#proxies.delete(id));
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#proxies.keys()].map((id) => this.remove(id)));
    await this.#sidecars.close();
    this.#end.abort();
    await this.#reading;
    await removeSidecarFiles(this.#options.directory);
  }

  /** Of those that are gone too: a record that nobody takes would keep its sidecar from others. */
  async #readRecords(): Promise<void> {
    const { signal } = this.#end;
    for (;;) {
      const batch = await this.#records.next(signal);
      if (batch === undefined) return;
      const { boxId, source, firstNumber, records } = batch;
      this.#records.acknowledge({ source, number: firstNumber + records.length - 1 });
      for (const text of records) this.#proxies.get(boxId)?.report(text);
      // A workload may be refused as often as it wants: others take their turn in between.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** Of one workload: what a sidecar intercepts for one must not be taken for that of another. */
function createAuthority(): BoxAuthority {
  const { certificatePem, privateKeyPem } = createCertificateAuthority();
  return { certificatePem, key: new Secret(privateKeyPem) };
}

async function removeSidecarFiles(directory: string): Promise<void> {
  const names = await readdir(directory);
  for (const name of names.filter((one) => one === 'sidecars' || /^s-[0-9a-f]{12}$/.test(one)))
    await rm(join(directory, name), { recursive: true, force: true });
}
