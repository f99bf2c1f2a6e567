// Runs `sallyport audit verify` on the audit log of a storm: the chain must be intact, and there must be checkpoints that
// were written while processes were killed.
import { type PlatformOptions, verifyAuditLog } from '../../support/platform-process.ts';

export type Verification = { readonly errors: readonly string[]; readonly reported: string };

export async function verifyStorm(options: PlatformOptions): Promise<Verification> {
  try {
    const reported = await verifyAuditLog(options);
    const [, checkpoints = '0'] = /, (\d+) checkpoint/.exec(reported) ?? [];
    return { reported, errors: Number(checkpoints) > 0 ? [] : ['there is no checkpoint of the audit log'] };
  } catch (error) {
    return { reported: '', errors: [String(error)] };
  }
}
