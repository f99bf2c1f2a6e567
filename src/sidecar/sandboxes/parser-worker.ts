// The program of the thread that parses large documents: one job in, one result out, both as JSON. It opens nothing, stores
// nothing, and imports only what parsing needs.
import { constants, getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import type { Issue } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { type ParseOptions, parseProxyConfig } from '../../policy/document/proxy-config.ts';
import { opaqueValues, type SentValue, toSentValues, withValues } from './config-transfer.ts';

export type ParserJob = {
  readonly document?: unknown;
  /** `stored` is without the values of its opaque headers. */
  readonly options: ParseOptions;
};

export type ParserResult =
  | {
      readonly ok: true;
      /** Without the values of its opaque headers. */
      readonly config: ProxyConfig;
      readonly values: readonly SentValue[];
      readonly warnings: readonly Issue[];
    }
  | { readonly ok: false; readonly issues: readonly Issue[] };

function toResult({ document, options }: ParserJob): ParserResult {
  const { stored } = options;
  // Distinct objects that only stand for the stored values.
  const kept = stored === undefined ? [] : opaqueValues(stored).map(() => new Secret('stored'));
  const parsed = parseProxyConfig(document, { ...options, stored: stored && withValues(stored, kept) });
  if (!parsed.ok) return parsed;
  const { value: config, warnings } = parsed;
  return { ok: true, config, values: toSentValues(config, kept), warnings };
}

/** The fourth part of a core that the main thread uses up. */
const NICER_BY = 5;

/**
 * The main thread serves every sandbox, perhaps on the same core: with a lower priority here it waits less for its turn. Not
 * the lowest one: a sandbox that keeps the only core busy would delay a document for a minute, so that its author could not
 * withdraw a rule. On Linux alone the priority is that of the thread, and not of the process.
 */
function yieldToMainThread(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + NICER_BY));
  } catch {
    // A sandbox around the process may not permit it.
  }
}

yieldToMainThread();
// As in the main thread.
Reflect.deleteProperty(Object.prototype, '__proto__');
parentPort?.on('message', (job: string) =>
  parentPort?.postMessage(JSON.stringify(toResult(JSON.parse(job)))),
);
