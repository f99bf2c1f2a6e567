// The target of the admin API for its fuzz target: it validates documents as the sidecar does and stores nothing.
import { done, type AdminTarget, refused, type ShownSandbox } from '../../src/admin/target.ts';
import { Secret } from '../../src/base/secret.ts';
import { compileProxyConfig } from '../../src/policy/compile.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import type { Config } from '../../src/sidecar/config.ts';
import { parseSandboxChange, parseSandboxDocument } from '../../src/sidecar/sandboxes/sandbox-document.ts';

const SANDBOX: ShownSandbox = {
  ...{
    id: 'default',
    proxy: 'http://127.0.0.1:3128',
    has_token: true,
    revision: 7,
    limits: {},
    connections: 0,
  },
  created_at: '2026-01-01T00:00:00.000Z',
};
const LIMITS = { maxConnections: 100, maxLookups: 32, maxIdleUpstream: 64, maxIdlePerHost: 8 };

export function createValidatingTarget(): AdminTarget {
  const config = { limits: LIMITS, allowClients: [], auth: 'token' } as unknown as Config;
  return {
    documentSchemas: () => ({ proxyConfig: {}, sandboxCreation: { properties: {} }, sandboxChange: {} }),
    isReady: () => true,
    reloads: () => ({ done: 0, failed: 0, isCurrent: true }),
    loadPage: async () => {
      throw new Error('the page is no part of this target');
    },
    records: { outcomes: [], follow: () => () => undefined },
    isAuthorityEnding: () => false,
    caPem: '',
    proxyConfig: () => ({ revision: 7, etag: '"e7"', document: {} }),
    async applyProxyConfig(_, document, { etag = '"e7"' }) {
      if (etag !== '"e7"') return refused({ kind: 'stale', message: 'Read it again' });
      const parsed = parseProxyConfig(document);
      if (!parsed.ok) return refused({ kind: 'invalid', issues: parsed.issues });
      const compiled = compileProxyConfig(parsed.value, () => new Secret('value'), 8);
      if (!compiled.ok) return refused({ kind: 'invalid', issues: compiled.issues });
      return done({ revision: 8, etag: '"e8"', warnings: parsed.warnings });
    },
    secretNames: () => [],
    changeSecrets: async (_, changes) => done({ names: [...changes.keys()], warnings: [] }),
    sandboxes: () => [SANDBOX],
    sandbox: () => SANDBOX,
    async createSandbox(document) {
      const parsed = parseSandboxDocument(document, config);
      return parsed.ok
        ? done({ sandbox: { ...SANDBOX, id: parsed.value.id ?? 'made' }, warnings: [] })
        : refused({ kind: 'invalid', issues: parsed.issues });
    },
    async changeSandbox(_, document) {
      const parsed = parseSandboxChange(document, config);
      return parsed.ok ? done({ sandbox: SANDBOX }) : refused({ kind: 'invalid', issues: parsed.issues });
    },
    removeSandbox: async () => done(undefined),
  };
}
