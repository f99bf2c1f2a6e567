// What the admin API sees of the sidecar: its sandboxes, and the changes that it may request. No secret value passes
// here, except a token that was just generated.
import type {
  AdminTarget,
  Change,
  DocumentSchemas,
  JsonSchema,
  Reloads,
  ShownSandbox,
} from '../../admin/target.ts';
import { listenerUrl } from '../../base/listen-address.ts';
import type { Issue } from '../../base/schema.ts';
import { toProxyConfigDocument } from '../../policy/document/proxy-config-document.ts';
import { proxyConfigUpdateJsonSchema } from '../../policy/document/proxy-config.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { outcomes } from '../../proxy/record.ts';
import type { LiveRecords } from '../records/live-records.ts';
import { expiryWarning } from '../../tls/authority-rotation.ts';
import { DocumentParser } from './document-parser.ts';
import { SandboxChanges } from './sandbox-changes.ts';
import type { ChangedEntry } from './sandbox-creation.ts';
import { sandboxJsonSchemas, showLimits } from './sandbox-document.ts';
import { DEFAULT } from './sandbox-rules.ts';
import type { Entry, Sandboxes } from './sandboxes.ts';

export function createAdminTarget(
  sandboxes: Sandboxes,
  { reloads, live }: { readonly reloads: Reloads; readonly live: LiveRecords },
): Omit<AdminTarget, 'loadPage'> {
  const changes = new SandboxChanges(sandboxes, new DocumentParser(sandboxes.shared));
  const show = (entry: Entry): ShownSandbox => showSandbox(entry, sandboxes.default);
  const showChanged = ({ entry, token, warnings }: ChangedEntry) => ({
    sandbox: show(entry),
    ...(token !== undefined && { token }),
    warnings,
  });
  return {
    documentSchemas,
    isReady: () => sandboxes.main.own.isReady(),
    reloads: () => reloads,
    records: { outcomes, follow: (follower) => live.follow(follower) },
    get caPem() {
      return sandboxes.shared.certificates.caPem;
    },
    isAuthorityEnding: () => expiryWarning(sandboxes.shared.ca.notAfter, Date.now()) !== undefined,
    proxyConfig(id) {
      const active = sandboxes.get(id)?.active;
      if (!active) return undefined;
      const document = toProxyConfigDocument(active.proxyConfig ?? EMPTY, () => ({ is_set: true }));
      return { revision: active.revision, etag: active.etag, document };
    },
    applyProxyConfig: (id, document, expected) => changes.apply(id, document, expected),
    secretNames(id) {
      const secrets = sandboxes.get(id)?.state.secrets;
      return secrets && [...secrets.keys()].toSorted();
    },
    async changeSecrets(id, given) {
      const changed = await changes.changeSecrets(id, given);
      const shadowed = [...given].filter(
        ([name, value]) => value !== null && id === DEFAULT && sandboxes.rules.operatorSecrets(name),
      );
      const warnings = shadowed.map(([name]): Issue => ({ loc: [name], msg: SHADOWED, type: 'shadowed' }));
      return mapChange(changed, ({ state }) => ({ names: [...state.secrets.keys()].toSorted(), warnings }));
    },
    sandboxes: () => sandboxes.all().map(show),
    sandbox(id) {
      const entry = sandboxes.get(id);
      return entry && show(entry);
    },
    createSandbox: async (document) => mapChange(await changes.create(document), showChanged),
    changeSandbox: async (id, document) => mapChange(await changes.change(id, document), showChanged),
    removeSandbox: (id) => changes.remove(id),
  };
}

/** Made for each request: few are made, and most processes get none. */
function documentSchemas(): DocumentSchemas {
  const { creation, change } = sandboxJsonSchemas();
  return {
    proxyConfig: proxyConfigUpdateJsonSchema() as JsonSchema,
    sandboxCreation: creation as JsonSchema,
    sandboxChange: change as JsonSchema,
  };
}

const SHADOWED =
  "The operator's files hold a secret of this name too; this value replaces it until you delete it";

const EMPTY: ProxyConfig = { rules: [], callbacks: [], no_proxy: [] };

function showSandbox(entry: Entry, main: Entry): ShownSandbox {
  const { state, active, sandbox, listener, failure } = entry;
  const { context } = sandbox;
  return {
    id: state.id,
    proxy: listenerUrl(state.listen ? listener : main.listener),
    has_token: state.token !== undefined,
    ...(state.ca && { ca_pem: state.ca.certificatePem }),
    revision: active.revision,
    limits: showLimits(context.limits),
    connections: context.clients.size,
    created_at: state.createdAt,
    ...(failure !== undefined && { failed: failure }),
  };
}

function mapChange<T, U>(change: Change<T>, map: (value: T) => U): Change<U> {
  return change.ok ? { ok: true, value: map(change.value) } : change;
}
