// The sidecar as the admin API knows it: what is shown of sandboxes, and the changes. No value of a secret passes here,
// but for a token that was made a moment ago.
import type { AdminTarget, Change, ShownSandbox } from '../../admin/target.ts';
import { listenerUrl } from '../../base/listen-address.ts';
import type { Issue } from '../../base/schema.ts';
import { toProxyConfigDocument } from '../../policy/document/proxy-config-document.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { createSandboxChanges } from './sandbox-changes.ts';
import type { Made } from './sandbox-creation.ts';
import { showLimits } from './sandbox-document.ts';
import { DEFAULT, type Entry, type Sandboxes } from './sandboxes.ts';

export function createAdminTarget(sandboxes: Sandboxes, caPem: string): AdminTarget {
  const changes = createSandboxChanges(sandboxes);

  function show({ state, inForce, sandbox, listener, failure }: Entry): ShownSandbox {
    const { context } = sandbox;
    return {
      id: state.id,
      proxy: listenerUrl(state.listen ? listener : sandboxes.default.listener),
      has_token: state.token !== undefined,
      revision: inForce.revision,
      limits: showLimits(context.limits),
      connections: context.clients.size,
      created_at: state.createdAt,
      ...(failure !== undefined && { failed: failure }),
    };
  }

  function showMade({ entry, token, warnings }: Made): {
    sandbox: ShownSandbox;
    token?: string;
    warnings: Made['warnings'];
  } {
    return { sandbox: show(entry), ...(token !== undefined && { token }), warnings };
  }

  return {
    isReady: () => sandboxes.main.own.isReady(),
    caPem,
    proxyConfig(id) {
      const inForce = sandboxes.get(id)?.inForce;
      if (!inForce) return undefined;
      const document = toProxyConfigDocument(inForce.proxyConfig ?? EMPTY, () => ({ is_set: true }));
      return { revision: inForce.revision, etag: inForce.etag, document };
    },
    applyProxyConfig: changes.apply,
    secretNames(id) {
      const secrets = sandboxes.get(id)?.state.secrets;
      return secrets && [...secrets.keys()].toSorted();
    },
    async changeSecrets(id, given) {
      const changed = await changes.changeSecrets(id, given);
      const shadowed = [...given].filter(
        ([name, value]) => value !== null && id === DEFAULT && sandboxes.isOperators(name),
      );
      const warnings = shadowed.map(([name]): Issue => ({ loc: [name], msg: SHADOWED, type: 'shadowed' }));
      return mapChange(changed, ({ state }) => ({ names: [...state.secrets.keys()].toSorted(), warnings }));
    },
    sandboxes: () => sandboxes.all().map(show),
    sandbox(id) {
      const entry = sandboxes.get(id);
      return entry && show(entry);
    },
    createSandbox: async (document) => mapChange(await changes.create(document), showMade),
    changeSandbox: async (id, document) => mapChange(await changes.change(id, document), showMade),
    removeSandbox: changes.remove,
  };
}

const SHADOWED =
  "The operator's files give a secret of this name too; this one is used instead of it, until it is deleted";

const EMPTY: ProxyConfig = { rules: [], callbacks: [], no_proxy: [] };

function mapChange<T, U>(change: Change<T>, map: (value: T) => U): Change<U> {
  return change.ok ? { ok: true, value: map(change.value) } : change;
}
