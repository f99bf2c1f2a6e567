// What the page of the admin API shows of the sidecar. It measures the event loop until it is disposed, reads the rules that are in force,
// and no secret value.
import type { PageTarget, ShownEntry } from '../../admin/page/page-target.ts';
import type { CompiledCallback, CompiledRule } from '../../policy/policy.ts';
import { type NamedCounts, labelOf } from '../../base/metrics/counts.ts';
import { outcomes } from '../../proxy/record.ts';
import { explain, parseAskedUrl } from '../explanation.ts';
import { explanationRows } from '../explanation-rows.ts';
import { createEventLoopDelay } from '../metrics/event-loop-delay.ts';
import { DEFAULT } from '../sandboxes/sandbox-rules.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { type StateParts, stateGroups } from './state-groups.ts';

export function createPageTarget(
  sandboxes: Sandboxes,
  given: Omit<StateParts, 'delay'>,
): PageTarget & Disposable {
  const delay = createEventLoopDelay();
  const parts = { ...given, delay };
  const { config, egress, counters } = sandboxes.shared;
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
        rules: withRequests(policy.rules.map(showRule), counters.rules),
        callbacks: withRequests(policy.callbacks.map(showCallback), counters.callbackRequests),
      };
    },
    state: () => stateGroups(sandboxes, parts),
    [Symbol.dispose]: () => delay[Symbol.dispose](),
  };
}

type Entry = Omit<ShownEntry, 'requests'>;

/** Names that have no count of their own share one, which says nothing of any of them. */
function withRequests(entries: readonly Entry[], counts: NamedCounts): readonly ShownEntry[] {
  const rows = new Map(counts.rows().map(({ name, values }) => [name, values]));
  return entries.map((entry) => {
    const values = rows.get(labelOf(entry.name)) ?? [];
    const requests = outcomes.flatMap((outcome, at) => {
      const value = values[at] ?? 0;
      return value === 0 ? [] : [`${value.toLocaleString('en-US')} ${outcome}`];
    });
    return { ...entry, requests };
  });
}

function showRule({ name, hosts, paths, headers, refusal }: CompiledRule): Entry {
  const names = headers.map((header) => header.name);
  return {
    name,
    hosts: hosts.map(({ text }) => text),
    paths: paths.map(({ text }) => text),
    gives: refusal === undefined ? names : [`refused: ${refusal}`],
  };
}

/** Of the endpoint without its query, which may hold a credential. */
function showCallback({ name, hosts, url }: CompiledCallback): Entry {
  const gives = [url.replace(/[?#].*$/, '')];
  return { name, hosts: hosts.map(({ text }) => text), paths: [], gives };
}
