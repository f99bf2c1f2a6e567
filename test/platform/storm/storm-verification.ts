// The product's own judgement on the audit log of a storm: an intact chain, and checkpoints of it that were written while
// processes were killed.
import { type PlatformOptions, verifyAuditLog } from '../../support/platform-process.ts';

export type Verification = { readonly faults: readonly string[]; readonly told: string };

export async function verifyStorm(options: PlatformOptions): Promise<Verification> {
  try {
    const told = await verifyAuditLog(options);
    const [, checkpoints = '0'] = /, (\d+) checkpoint/.exec(told) ?? [];
    return { told, faults: Number(checkpoints) > 0 ? [] : ['there is no checkpoint of the audit log'] };
  } catch (error) {
    return { told: '', faults: [String(error)] };
  }
}
