// The library: a sidecar in the process of its caller, for test suites and hosts of agents. It has no state, and no variable is one of its settings.
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import { listenerUrl } from '../base/listen-address.ts';
import type { LogSink } from '../base/log.ts';
import type { Issue } from '../base/schema.ts';
import { Secret } from '../base/secret.ts';
import { withoutProxySettings } from '../cli/client/client-environment.ts';
import { prepareClients } from '../cli/client/client-setup.ts';
import type { SecretLookup } from '../policy/compile.ts';
import { parseProxyConfig } from '../policy/document/proxy-config.ts';
import { type Config, parseConfig } from '../sidecar/config.ts';
import { createSidecar as composeSidecar, type Sidecar } from '../sidecar/sidecar.ts';
import {
  type CertificateAuthority,
  createCertificateAuthority,
  parseCertificateAuthority,
} from '../tls/certificate-authority.ts';
import type { RunningSidecar, SidecarOptions } from './running-sidecar.ts';

export type { RunningSidecar, SidecarOptions };

const WITHOUT_EFFECT: readonly string[] = [
  ...['proxy_config', 'secrets', 'watch', 'state_dir', 'state_key_file', 'ca', 'sandboxes', 'metrics'],
];
/** Those who wait for the end of a sidecar are tests. */
const DRAIN_MS = 1_000;

/** Throws an Error that says what of the options is wrong. */
export async function createSidecar(options: SidecarOptions = {}): Promise<RunningSidecar> {
  const config = readSettings(options.settings ?? {});
  const ca = readAuthority(options.ca);
  const sidecar = await composeSidecar(config, { ca, sink: sinkOf(options.onLog) });
  const opened: Opened = { sidecar, config, ca, directory: undefined, admin: undefined };
  try {
    apply(sidecar, options.proxyConfig ?? {}, options.secrets ?? {});
    await sidecar.listen();
    if (config.admin.listen !== 'off') opened.admin = await openAdmin(sidecar);
    opened.directory = await mkdtemp(join(tmpdir(), 'sallyport-library-'));
    // Helpers of a client may be other users.
    await chmod(opened.directory, 0o755);
    const environment = await environmentOf(opened, options.proxyConfig ?? {});
    sidecar.prepareUpstreams();
    return toRunning(opened, environment);
  } catch (error) {
    await end(opened);
    throw error;
  }
}

type Opened = {
  readonly sidecar: Sidecar;
  readonly config: Config;
  readonly ca: CertificateAuthority;
  directory: string | undefined;
  admin: { readonly url: string; readonly token: string } | undefined;
};

function toRunning(opened: Opened, environment: RunningSidecar['environment']): RunningSidecar {
  const { sidecar, ca, admin } = opened;
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= end(opened));
  return {
    proxyUrl: listenerUrl({ address: sidecar.proxyAddress, port: sidecar.proxyPort }),
    adminUrl: admin?.url,
    adminToken: admin?.token,
    caPem: ca.certificatePem,
    environment,
    apply(proxyConfig, secrets = {}) {
      if (closed !== undefined) throw new InputError('the sidecar is closed: create another one');
      apply(sidecar, proxyConfig, secrets);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function end({ sidecar, directory }: Opened): Promise<void> {
  await sidecar.close();
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
}

function readSettings(settings: object): Config {
  const [unused] = WITHOUT_EFFECT.filter((key) => key in settings);
  if (unused !== undefined)
    throw new InputError(`settings.${unused} has no effect in the library: remove it`);
  const given = settings as { readonly admin?: object; readonly timeouts?: object };
  const document = {
    listen: '127.0.0.1:0',
    ...settings,
    admin: { listen: 'off', ...given.admin },
    timeouts: { drain_ms: DRAIN_MS, ...given.timeouts },
  };
  const parsed = parseConfig(document, {});
  if (parsed.ok) return parsed.value;
  throw invalid('settings', parsed.issues);
}

function readAuthority(given: SidecarOptions['ca']): CertificateAuthority {
  if (given === undefined) return createCertificateAuthority();
  const parsed = parseCertificateAuthority(given);
  if ('spkiSha256' in parsed) return parsed;
  throw new InputError(`ca.${parsed.part === 'key' ? 'privateKeyPem' : 'certificatePem'} ${parsed.message}`);
}

function apply(sidecar: Sidecar, document: object, secrets: Readonly<Record<string, string>>): void {
  const known = new Map(Object.entries(secrets).map(([name, value]) => [name, new Secret(value)]));
  const lookup: SecretLookup = (name) => known.get(name);
  const applied = sidecar.applyProxyConfig(document, lookup);
  if (!applied.ok) throw invalid('proxyConfig', applied.issues);
}

/** No value is in it. */
function invalid(what: string, issues: readonly Issue[]): InputError {
  const lines = issues.map(({ loc, msg }) => `${[what, ...loc].join('.')}: ${msg}`);
  return new InputError(lines.join('\n'));
}

async function openAdmin(sidecar: Sidecar): Promise<NonNullable<Opened['admin']>> {
  const token = randomBytes(32).toString('base64url');
  return { url: await sidecar.openAdmin(new Secret(token)), token };
}

function environmentOf({ sidecar, config, ca, directory }: Opened, document: object) {
  const { allowWildcards, reservedHost } = config;
  const parsed = parseProxyConfig(document, { allowWildcards, reservedHost });
  const rules = parsed.ok ? { document, authored: parsed.value } : undefined;
  const proxy = { host: sidecar.proxyAddress, port: sidecar.proxyPort, caPem: ca.certificatePem, rules };
  const warn = (warning: string): void => sidecar.log.warn(warning);
  return prepareClients(config, proxy, {
    ...{ directory, caller: withoutProxySettings(process.env), without: undefined, warn },
  });
}

function sinkOf(onLog: SidecarOptions['onLog']): LogSink {
  return {
    write(line) {
      try {
        onLog?.(line);
      } catch (error) {
        // Not within a request, which it would end: it is an uncaught error of the caller.
        queueMicrotask(() => {
          throw error;
        });
      }
    },
    isBlocked: false,
    dropped: 0,
    close: async () => {},
  };
}
