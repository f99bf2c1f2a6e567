// `sallyport status`: whether a proxy runs, what it serves, and until when its CA is valid.
import { readFile } from 'node:fs/promises';
import { InputError } from '../base/input-error.ts';
import { isObject } from '../base/json/json-document.ts';
import { formatAddress } from '../base/listen-address.ts';
import { z } from '../base/schema.ts';
import type { Config } from '../sidecar/config.ts';
import { expiryWarning, rotationFiles } from '../tls/authority-rotation.ts';
import { AdminUnreachable, askAdmin } from './admin-client.ts';
import { aboutCertificate, readAuthority } from './ca/certificate-file.ts';
import { parseCommandLine } from './command/declaration.ts';
import { statusCommand } from './command/inspection-commands.ts';
import { escapeControls } from './issue-lines.ts';
import { caFiles, readConfig } from './settings.ts';

type Status = {
  readonly proxy: string;
  readonly ready: boolean;
  /** Why the proxy is not ready, or what could not be asked. */
  readonly problems: readonly string[];
  readonly ca?: ReturnType<typeof aboutCertificate>;
  /** The CA that follows it, in a rotation. */
  readonly next_ca?: NextAuthority;
  readonly sandboxes?: readonly unknown[];
  readonly reloads?: Reloads;
};

type NextAuthority = ReturnType<typeof aboutCertificate> & { readonly signs_from: string };

/** Of the operator's files since the start, as `GET /readyz` tells them. */
type Reloads = { readonly done: number; readonly failed: number; readonly is_current: boolean };

/** Exit code 0 if the proxy is ready, 1 otherwise, 2 for a configuration that must be corrected. */
export async function run(args: readonly string[]): Promise<number> {
  const { json, ...flags } = parseCommandLine(statusCommand, args).values;
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const status = await readStatus(config);
  process.stdout.write(json ? `${JSON.stringify(status, null, 2)}\n` : toText(status));
  return status.ready ? 0 : 1;
}

async function readStatus(config: Config): Promise<Status> {
  const problems: string[] = [];
  const readiness = await attempt(problems, () => askAdmin(config, '/readyz', { needsToken: false }));
  if (readiness !== undefined && readiness.status !== 200)
    problems.push(`the proxy is not ready: its admin API responded with ${readiness.status}`);
  const reloads = readiness && reloadsOf(readiness.document);
  if (reloads?.is_current === false)
    problems.push(
      'the last reload of the rules and secrets failed: what was active before still is, and the log of the proxy says why',
    );
  const ca = await attempt(problems, async () => {
    const { certificateFile: file } = caFiles(config);
    return aboutCertificate(file, await readAuthority(file));
  });
  const next = await attempt(problems, () => readNext(config));
  const warning = ca && next === undefined && expiryWarning(new Date(ca.valid_to), Date.now());
  if (typeof warning === 'string') problems.push(warning);
  const listed =
    readiness && (await attempt(problems, () => askAdmin(config, '/v1/sandboxes', { needsToken: true })));
  const sandboxes = listed && sandboxesOf(listed.document);
  if (listed !== undefined && sandboxes === undefined)
    problems.push(`the sandboxes are not shown: the admin API responded with ${listed.status}`);
  return {
    proxy: addressOf(sandboxes) ?? formatAddress(config.listen),
    ready: readiness?.status === 200,
    problems,
    ...(ca && { ca }),
    ...(next && { next_ca: next }),
    ...(sandboxes && { sandboxes }),
    ...(reloads && { reloads }),
  };
}

/** From its files: with the date a rotation has begun. Another user than that of the proxy cannot read it, and is shown none. */
async function readNext(config: Config): Promise<NextAuthority | undefined> {
  const { certificateFile: file, scheduleFile } = rotationFiles(caFiles(config));
  const date = await readFile(scheduleFile, 'utf8').catch(() => undefined);
  if (date === undefined) return undefined;
  return { ...aboutCertificate(file, await readAuthority(file)), signs_from: date.trim() };
}

/** Undefined: it failed for a reason that is added to `problems`. */
async function attempt<T>(problems: string[], work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AdminUnreachable) && !(error instanceof InputError)) throw error;
    problems.push(error.message);
    return undefined;
  }
}

/** Undefined for a proxy of a version that tells none, or one that is not ready. */
function reloadsOf(document: unknown): Reloads | undefined {
  const parsed = readyBody.safeParse(document);
  return parsed.success ? parsed.data.reloads : undefined;
}

const readyBody = z.object({
  reloads: z.object({ done: z.number(), failed: z.number(), is_current: z.boolean() }),
});

/** `GET /v1/sandboxes` responds with `{sandboxes: [...]}`. */
function sandboxesOf(document: unknown): readonly unknown[] | undefined {
  if (!isObject(document)) return undefined;
  const { sandboxes } = document;
  return Array.isArray(sandboxes) ? sandboxes : undefined;
}

/** Where the proxy that runs listens, which the settings of this command need not say. */
function addressOf(sandboxes: readonly unknown[] = []): string | undefined {
  const url = sandboxes.filter(isObject).find(({ id }) => id === 'default')?.['proxy'];
  return typeof url === 'string' ? url.replace(/^http:\/\//, '') : undefined;
}

function toText({ proxy, ready, problems, ca, next_ca: next, reloads, sandboxes = [] }: Status): string {
  const rows: (readonly [string, string])[] = [
    ['proxy', `${proxy}, ${ready ? 'ready' : 'not ready'}`],
    ...(ca ? [['CA', `${ca.fingerprint}, valid until ${ca.valid_to}`] as const] : []),
    ...(next ? [['next CA', `${next.fingerprint}, signs from ${next.signs_from} on`] as const] : []),
    ...sandboxes.filter(isObject).map(({ id, connections, revision, failed }) => {
      const state = failed === undefined ? `revision ${String(revision)}` : `failed: ${String(failed)}`;
      return ['sandbox', `${String(id)}, ${state}, ${String(connections)} connections`] as const;
    }),
    ...(reloads ? [['reloads', `${reloads.done} done, ${reloads.failed} failed`] as const] : []),
    ...problems.map((problem) => ['problem', problem] as const),
  ];
  // What listens at the address of the admin API may be a program of the sandbox, and a terminal executes control characters.
  return rows.map(([label, text]) => `${label.padEnd(10)}${escapeControls(text)}\n`).join('');
}
