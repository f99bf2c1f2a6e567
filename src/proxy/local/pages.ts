// What the reserved host serves at each path. A page shows the sandbox of its client and no other, and no value of a header.
import type { CompiledCallback, CompiledRule, Policy } from '../../policy/policy.ts';
import { envScript } from './env-script.ts';
import type { ReservedHost } from './reserved-host.ts';

export type Page = { readonly type: string; readonly body: string | Buffer };

export type PageSource = {
  readonly sandbox: string;
  readonly policy: Policy;
  readonly reserved: ReservedHost;
};

const TEXT = 'text/plain; charset=utf-8';
const PEM = 'application/x-pem-file';

/** The page of a target in origin-form, whose query is ignored; undefined if there is none. */
export function pageAt(target: string, source: PageSource): Page | undefined {
  const { policy, reserved } = source;
  const query = target.indexOf('?');
  const path = query === -1 ? target : target.slice(0, query);
  if (path === '/') return { type: TEXT, body: overview(reserved.name) };
  if (path === '/status') return { type: 'application/json', body: `${JSON.stringify(statusOf(source))}\n` };
  if (path === '/env') {
    const { name, certificates } = reserved;
    const { placeholders } = policy;
    return { type: TEXT, body: envScript({ name, fingerprint: certificates.fingerprint, placeholders }) };
  }
  return certificatePage(path, reserved);
}

/** The files of certificates, which the proxy port serves too. */
export function certificatePage(
  path: string,
  { certificates }: Pick<ReservedHost, 'certificates'>,
): Page | undefined {
  if (path === '/ca.pem') return { type: PEM, body: certificates.caPem };
  return path === '/ca-bundle.pem' ? { type: PEM, body: certificates.bundlePem } : undefined;
}

function overview(name: string): string {
  return `This is Sallyport, the proxy of this sandbox. It adds credentials to the requests that its rules name.

  http://${name}/status         which hosts get headers, and the last refusals (JSON)
  http://${name}/env            a script for POSIX shells: eval "$(curl -fsS http://${name}/env)"
  http://${name}/ca.pem         the CA certificate of the proxy
  http://${name}/ca-bundle.pem  the same with the roots of the system
`;
}

// A proxy_config may have 1 MiB, and the status is written in one turn of the event loop.
const MAX_ENTRIES = 200;
const MAX_NAMES = 50;

/** The names of headers, never a value; of a refusal its public text, never its cause. */
function statusOf({ sandbox, policy, reserved }: PageSource): object {
  const { revision, rules, callbacks, summary } = policy;
  const shownRules = rules.slice(0, MAX_ENTRIES);
  const hosts = [
    ...shownRules.map(describeRule),
    ...callbacks.slice(0, MAX_ENTRIES - shownRules.length).map(describeCallback),
  ];
  const left = summary.rules + summary.callbacks - hosts.length;
  return {
    sandbox,
    revision,
    hosts,
    ...(left > 0 && { more_hosts: left }),
    refusals: reserved.refusals.recent(),
  };
}

function describeRule({ name, hosts, paths, headers }: CompiledRule): object {
  return {
    rule: name,
    match_hosts: namesOf(hosts),
    ...(paths.length > 0 && { match_paths: namesOf(paths) }),
    headers: headers.slice(0, MAX_NAMES).map((header) => header.name),
  };
}

/** Its headers are known only when the endpoint responds. Its URL is the tenant's. */
function describeCallback({ name, hosts }: CompiledCallback): object {
  return { callback: name, match_hosts: namesOf(hosts) };
}

function namesOf(patterns: readonly { readonly text: string }[]): readonly string[] {
  const names = patterns.slice(0, MAX_NAMES).map(({ text }) => text);
  return patterns.length > MAX_NAMES ? [...names, '…'] : names;
}
