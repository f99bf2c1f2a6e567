// What the routes of the modules are made with in a test: the default config, a vault without a master key unless a file is
// named, and neither jobs nor notifications.
import { join } from 'node:path';
import { parsePlatformConfig, type PlatformConfig } from '../../src/platform/config.ts';
import type { Wiring } from '../../src/platform/module.ts';
import { createVault } from '../../src/platform/vault/vault.ts';

export type TestWiring = Partial<Pick<Wiring, 'send' | 'notifications'>> & {
  readonly canUseAuditLogs?: boolean | undefined;
  readonly masterKeyFile?: string | undefined;
  /** Settings of the config file. */
  readonly config?: object | undefined;
};

export function createTestWiring({
  canUseAuditLogs = false,
  send = refuseJobs,
  masterKeyFile = '/nowhere/vault-master.key',
  config = {},
  notifications = { subscribe: refuseSubscribers },
}: TestWiring = {}): Wiring {
  return {
    config: createTestConfig({
      default_org_features: { can_use_audit_logs: canUseAuditLogs },
      sandboxes: SANDBOXES,
      deployments: DEPLOYMENTS,
      exports: EXPORTS,
      ...config,
    }),
    vault: createVault({ masterKeyFile }),
    send,
    notifications,
  };
}

/** Boxes can be created, as many as a test needs; what runs them is up to the test. */
const SANDBOXES = {
  runtime: 'bubblewrap',
  ...{ max_boxes: 1e6, max_cpu_millicores: 1e12, max_memory_bytes: Number.MAX_SAFE_INTEGER },
  ...{ max_storage_bytes: Number.MAX_SAFE_INTEGER, max_snapshot_bytes: Number.MAX_SAFE_INTEGER },
  snapshot_directories: ['/srv/snapshots'],
};

/** As many as a test needs, from every source. */
const DEPLOYMENTS = {
  ...{ max_deployments: 1e6, max_pending_revisions: 1e6, max_open_uploads: 1e6 },
  max_source_bytes: Number.MAX_SAFE_INTEGER,
  registry: {
    url: 'registry.example.test/images',
    token_file: join(import.meta.dirname, 'registry-token.txt'),
  },
};

/** A test names the endpoint that it has made: no destination leads anywhere else. */
const EXPORTS = { allowed_endpoints: [] };

/** The defaults, with a document over them. */
export function createTestConfig(document: object = {}): PlatformConfig {
  const parsed = parsePlatformConfig(document, {});
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value;
}

async function refuseSubscribers(): Promise<never> {
  throw new Error('this test has no notifications');
}

async function refuseJobs(): Promise<never> {
  throw new Error('this test has no jobs');
}
