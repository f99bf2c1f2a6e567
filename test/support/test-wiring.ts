// What the routes of the modules are made with in a test: the default config, a vault without a master key unless a file is
// named, and jobs that cannot be sent.
import { parsePlatformConfig, type PlatformConfig } from '../../src/platform/config.ts';
import type { Wiring } from '../../src/platform/module.ts';
import { createVault } from '../../src/platform/vault/vault.ts';

export type TestWiring = {
  readonly canUseAuditLogs?: boolean | undefined;
  readonly send?: Wiring['send'];
  readonly masterKeyFile?: string | undefined;
  /** Settings of the config file. */
  readonly config?: object | undefined;
};

export function createTestWiring({
  canUseAuditLogs = false,
  send = refuseJobs,
  masterKeyFile = '/nowhere/vault-master.key',
  config = {},
}: TestWiring = {}): Wiring {
  return {
    config: createTestConfig({ default_org_features: { can_use_audit_logs: canUseAuditLogs }, ...config }),
    vault: createVault({ masterKeyFile }),
    send,
  };
}

/** The defaults, with a document over them. */
export function createTestConfig(document: object = {}): PlatformConfig {
  const parsed = parsePlatformConfig(document, {});
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value;
}

async function refuseJobs(): Promise<never> {
  throw new Error('this test has no jobs');
}
