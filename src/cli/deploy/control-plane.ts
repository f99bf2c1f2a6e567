// The calls of the public control plane that the command makes, and what it reads of their responses. Fields that it does not
// know are not read.
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { InputError } from '../../base/input-error.ts';
import type { Secret } from '../../base/secret.ts';
import { z } from '../../base/schema.ts';
import type { ApiConnection } from './connection.ts';
import { type Call, call, CallRejected, putContent } from './platform-call.ts';
import { repeatCall, type Repetition, type Wait } from './repeated-call.ts';

const deployment = z.object({
  id: z.string(),
  name: z.string(),
  source: z.string().optional(),
  status: z.string().optional(),
  /** Why it is not yet what it should be. */
  status_reason: z.string().nullish(),
  tenant_id: z.string().nullish(),
  latest_revision_id: z.string().nullish(),
  active_revision_id: z.string().nullish(),
  source_config: z.object({ custom_url: z.string().nullish() }).nullish(),
  updated_at: z.string().optional(),
});
export type Deployment = z.infer<typeof deployment>;

const revision = z.object({
  id: z.string(),
  status: z.string(),
  status_reason: z.string().nullish(),
  created_at: z.string().optional(),
  source_revision_config: z.object({ source_tarball_path: z.string().nullish() }).nullish(),
});
export type Revision = z.infer<typeof revision>;

const upload = z.object({ upload_url: z.url({ protocol: /^https?$/ }), object_path: z.string().min(1) });
const profiles = z.object({
  proxy_profiles: z.array(z.object({ id: z.string(), name: z.string() })),
  next_cursor: z.string().nullish(),
});

const logEntry = z.object({
  id: z.union([z.string(), z.number()]).optional(),
  timestamp: z.union([z.string(), z.number()]).nullish(),
  level: z.string().nullish(),
  message: z.string().nullish(),
});
export type LogEntry = z.infer<typeof logEntry>;
const logPage = z.object({ logs: z.array(logEntry), next_offset: z.string().nullish() });
export type LogPage = z.infer<typeof logPage>;

export type LogQuery = {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  readonly level?: string;
  readonly start_time?: string;
  readonly offset?: string;
};

/** What is packed and what it needs, as the command line gives it. */
export type Changes = {
  readonly objectPath: string;
  readonly configPath: string;
  readonly installCommand: string | undefined;
  readonly buildCommand: string | undefined;
  readonly secrets: ReadonlyMap<string, Secret>;
  readonly proxyProfileId: string | undefined;
};

function isThere({ status }: Deployment): boolean {
  return status !== 'AWAITING_DELETE';
}

/** The most that a page may have. */
const PAGE = 100;

export class ControlPlane {
  readonly #connection: ApiConnection;
  readonly #wait: Wait;

  /** `wait`: in place of real time. */
  constructor(connection: ApiConnection, wait: Wait = delay) {
    this.#connection = connection;
    this.#wait = wait;
  }

  /** By its exact name; one that is being deleted only where there is no other. */
  async findByName(name: string): Promise<Deployment | undefined> {
    const all = (await this.list(name)).filter((one) => one.name === name);
    return all.find(isThere) ?? all[0];
  }

  /** One that takes changes: while another one is being deleted, its name is free. */
  async findExisting(name: string): Promise<Deployment | undefined> {
    const found = await this.findByName(name);
    return found !== undefined && isThere(found) ? found : undefined;
  }

  async list(nameContains?: string): Promise<readonly Deployment[]> {
    const found: Deployment[] = [];
    const query = nameContains === undefined ? {} : { name_contains: nameContains };
    for (;;) {
      const page = await this.#read(z.object({ resources: z.array(deployment) }), '/v2/deployments', {
        query: { ...query, limit: PAGE, offset: found.length },
      });
      found.push(...page.resources);
      if (page.resources.length < PAGE) return found;
    }
  }

  get(id: string): Promise<Deployment> {
    return this.#read(deployment, `/v2/deployments/${encodeURIComponent(id)}`);
  }

  /** Of a lost response it finds what was created by its name. */
  create(name: string, { secrets, proxyProfileId }: Pick<Changes, 'secrets' | 'proxyProfileId'>) {
    const body = {
      ...{ name, source: 'internal_source', source_config: { deployment_type: 'dev' } },
      ...{ source_revision_config: {}, secrets: toSecrets(secrets) },
      ...(proxyProfileId === undefined ? {} : { proxy_profile_id: proxyProfileId }),
    };
    const create = { method: 'POST', path: '/v2/deployments', body } as const;
    return this.#change(deployment, create, { find: () => this.findExisting(name) });
  }

  /** Sends the archive to an address that the platform gives for it. Returns the path of what was stored. */
  async upload(id: string, content: () => Readable, bytes: number): Promise<string> {
    const path = `/v2/deployments/${encodeURIComponent(id)}/upload-url`;
    // An address is for one upload: each try gets its own.
    const work = async (): Promise<string> => {
      const what = { method: 'POST', path } as const;
      const reply = await call(this.#connection, what);
      const { upload_url: address, object_path: stored } = parseReply(upload, what, reply);
      await putContent(new URL(address), content(), bytes);
      return stored;
    };
    return repeatCall(work, { wait: this.#wait });
  }

  /** Makes the revision of what was uploaded. */
  change(id: string, changes: Changes): Promise<Deployment> {
    const { objectPath, configPath, installCommand, buildCommand, secrets, proxyProfileId } = changes;
    const commands = {
      ...(installCommand === undefined ? {} : { install_command: installCommand }),
      ...(buildCommand === undefined ? {} : { build_command: buildCommand }),
    };
    const body = {
      revision_source: 'internal_source',
      source_revision_config: { source_tarball_path: objectPath, langgraph_config_path: configPath },
      ...(Object.keys(commands).length === 0 ? {} : { source_config: commands }),
      secrets: toSecrets(secrets),
      ...(proxyProfileId === undefined ? {} : { proxy_profile_id: proxyProfileId }),
    };
    // An upload is used once: the revision that has it is ours.
    const isOurs = (one: Revision): boolean => one.source_revision_config?.source_tarball_path === objectPath;
    const path = `/v2/deployments/${encodeURIComponent(id)}`;
    const find = async (): Promise<Deployment | undefined> =>
      (await this.revisions(id, 20)).some(isOurs) ? this.get(id) : undefined;
    return this.#change(deployment, { method: 'PATCH', path, body }, { find });
  }

  /** Newest first. */
  async revisions(id: string, limit: number): Promise<readonly Revision[]> {
    const path = `/v2/deployments/${encodeURIComponent(id)}/revisions`;
    const page = z.object({ resources: z.array(revision) });
    return (await this.#read(page, path, { query: { limit } })).resources;
  }

  revision(id: string, revisionId: string): Promise<Revision> {
    const path = `/v2/deployments/${encodeURIComponent(id)}/revisions/${encodeURIComponent(revisionId)}`;
    return this.#read(revision, path);
  }

  /** Deploys a former revision again, as a new one. */
  redeploy({ id, latest_revision_id: latest }: Deployment, revisionId: string): Promise<Deployment> {
    const path = `/v2/deployments/${encodeURIComponent(id)}/revisions/${encodeURIComponent(revisionId)}/redeploy`;
    const find = async (): Promise<Deployment | undefined> => {
      const now = await this.get(id);
      return now.latest_revision_id === latest ? undefined : now;
    };
    return this.#change(deployment, { method: 'POST', path }, { find });
  }

  async delete(id: string): Promise<void> {
    const path = `/v2/deployments/${encodeURIComponent(id)}`;
    const isGone = async (): Promise<true | undefined> => {
      const left = await this.get(id).catch((error: unknown) => {
        if (error instanceof CallRejected && error.status === 404) return undefined;
        throw error;
      });
      return left === undefined ? true : undefined;
    };
    const work = async (): Promise<true> => {
      await call(this.#connection, { method: 'DELETE', path });
      return true;
    };
    await repeatCall(work, { find: isGone, wait: this.#wait });
  }

  buildLogs(id: string, revisionId: string, body: LogQuery): Promise<LogPage> {
    const path = `/v1/projects/${encodeURIComponent(id)}/revisions/${encodeURIComponent(revisionId)}/build_logs`;
    return this.#read(logPage, path, { method: 'POST', body });
  }

  deployLogs(id: string, revisionId: string | undefined, body: LogQuery): Promise<LogPage> {
    const part = revisionId === undefined ? '' : `/revisions/${encodeURIComponent(revisionId)}`;
    const path = `/v1/projects/${encodeURIComponent(id)}${part}/deploy_logs`;
    return this.#read(logPage, path, { method: 'POST', body });
  }

  /** The id of a proxy profile, by its name or its id. */
  async findProfile(name: string): Promise<string> {
    let cursor: string | null | undefined;
    do {
      const query = { limit: PAGE, ...(cursor ? { cursor } : {}) };
      const page = await this.#read(profiles, '/v1/proxy-profiles', { query });
      const found = page.proxy_profiles.find((one) => one.name === name || one.id === name);
      if (found !== undefined) return found.id;
      cursor = page.next_cursor;
    } while (cursor);
    throw new InputError('--proxy-profile: the workspace has no proxy profile of this name or id');
  }

  /** A call that changes nothing. */
  #read<T>(schema: z.ZodType<T>, path: string, more: Partial<Call> = {}): Promise<T> {
    return this.#change(schema, { method: 'GET', path, ...more }, { isRead: true });
  }

  async #change<T>(schema: z.ZodType<T>, what: Call, repetition: Repetition<T> = {}): Promise<T> {
    const options = { ...repetition, wait: this.#wait };
    return repeatCall(async () => parseReply(schema, what, await call(this.#connection, what)), options);
  }
}

function parseReply<T>(schema: z.ZodType<T>, { method, path }: Call, document: unknown): T {
  const parsed = schema.safeParse(document);
  if (parsed.success) return parsed.data;
  const places = parsed.error.issues.map((issue) => issue.path.join('.') || 'the document');
  throw new Error(
    `${method} ${path}: the response is not that of a control plane (${[...new Set(places)].join(', ')})`,
  );
}

/** Their values are in the body of the call and nowhere else. */
function toSecrets(secrets: ReadonlyMap<string, Secret>): readonly { name: string; value: string }[] {
  return [...secrets].map(([name, value]) => ({ name, value: value.reveal() }));
}
