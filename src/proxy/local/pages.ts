// What the reserved host serves at each path. A page shows the sandbox of its client and no other, and no value of a header.
import type { CompiledCallback, CompiledRule, Policy } from '../../policy/policy.ts';
import { envScript } from './env-script.ts';
import type { ReservedHost } from './reserved-host.ts';

/** `body`: in parts, of which the large ones are shared by all responses. */
export type Page = { readonly type: string; readonly body: readonly Buffer[] };

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
  if (path === '/') return { type: TEXT, body: [Buffer.from(overview(reserved.name))] };
  if (path === '/status') return { type: 'application/json', body: statusOf(source) };
  if (path === '/env') return { type: TEXT, body: [scriptOf(policy, reserved)] };
  return certificatePage(path, reserved);
}

// What follows from the policy is made once for each: a tenant has many client addresses, each may ask ten times a second,
// and what a client does not read stays in memory.
const scripts = new WeakMap<Policy, { readonly fingerprint: string; readonly script: Buffer }>();
const statuses = new WeakMap<Policy, Buffer>();

function scriptOf(policy: Policy, { name, certificates: { fingerprint } }: ReservedHost): Buffer {
  const known = scripts.get(policy);
  if (known?.fingerprint === fingerprint) return known.script;
  const script = Buffer.from(envScript({ name, fingerprint, placeholders: policy.placeholders }));
  scripts.set(policy, { fingerprint, script });
  return script;
}

/** The files of certificates, which the proxy port serves too. */
export function certificatePage(
  path: string,
  { certificates }: Pick<ReservedHost, 'certificates'>,
): Page | undefined {
  if (path === '/ca.pem') return { type: PEM, body: [Buffer.from(certificates.caPem)] };
  return path === '/ca-bundle.pem' ? { type: PEM, body: certificates.bundle } : undefined;
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

/** A JSON object. Of a refusal it has the public text, never its cause. */
function statusOf({ sandbox, policy, reserved }: PageSource): readonly Buffer[] {
  const members = statuses.get(policy) ?? policyMembers(policy);
  statuses.set(policy, members);
  return [
    Buffer.from(`{"sandbox":${JSON.stringify(sandbox)},`),
    members,
    Buffer.from(`,"refusals":${JSON.stringify(reserved.refusals.recent())}}\n`),
  ];
}

/** Members without the braces. The names of headers, never a value; nothing of the sandbox, which the cache does not know. */
function policyMembers({ revision, rules, callbacks }: Policy): Buffer {
  const shownRules = rules.slice(0, MAX_ENTRIES);
  const hosts = [
    ...shownRules.map(describeRule),
    ...callbacks.slice(0, MAX_ENTRIES - shownRules.length).map(describeCallback),
  ];
  const left = rules.length + callbacks.length - hosts.length;
  const members = { revision, hosts, ...(left > 0 && { more_hosts: left }) };
  return Buffer.from(JSON.stringify(members).slice(1, -1));
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
