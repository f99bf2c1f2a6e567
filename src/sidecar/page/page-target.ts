// What the page of the admin API shows of the sidecar. It reads the rules that are in force, and no secret value.
import type { PageTarget, ShownEntry } from '../../admin/page/page-target.ts';
import type { CompiledCallback, CompiledRule } from '../../policy/policy.ts';
import { explain, parseAskedUrl } from '../explanation.ts';
import { explanationRows } from '../explanation-rows.ts';
import { DEFAULT } from '../sandboxes/sandbox-rules.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { type StateParts, stateGroups } from './state-groups.ts';

export function createPageTarget(sandboxes: Sandboxes, parts: StateParts): PageTarget {
  const { config, egress } = sandboxes.shared;
  const settings = { egress, reservedHost: config.reservedHost, masksBodies: config.scrub === 'body' };
  return {
    sandboxes() {
      const ids = sandboxes.all().map(({ state }) => state.id);
      return [DEFAULT, ...ids.filter((id) => id !== DEFAULT).toSorted()];
    },
    explain(id, url, method) {
      const entry = sandboxes.get(id);
      if (entry === undefined) return undefined;
      const request = parseAskedUrl(url, method);
      if (typeof request === 'string') return request;
      const explanation = explain(request, entry.sandbox.context.policy(), settings);
      return {
        isRefused: explanation.outcome === 'refused',
        rows: explanationRows(request, explanation),
      };
    },
    rules(id) {
      const policy = sandboxes.get(id)?.sandbox.context.policy();
      if (policy === undefined) return undefined;
      return {
        revision: policy.revision,
        rules: policy.rules.map(showRule),
        callbacks: policy.callbacks.map(showCallback),
      };
    },
    state: () => stateGroups(sandboxes, parts),
  };
}

function showRule({ name, hosts, paths, headers, refusal }: CompiledRule): ShownEntry {
  const names = headers.map((header) => header.name);
  return {
    name,
    hosts: hosts.map(({ text }) => text),
    paths: paths.map(({ text }) => text),
    gives: refusal === undefined ? names : [`refused: ${refusal}`],
  };
}

/** Of the endpoint without its query, which may hold a credential. */
function showCallback({ name, hosts, url }: CompiledCallback): ShownEntry {
  const gives = [url.replace(/[?#].*$/, '')];
  return { name, hosts: hosts.map(({ text }) => text), paths: [], gives };
}
