// What clients of a platform do in a storm: deploy, create and delete, and ask what is deployed, all the time. Each revision has a number
// that its graph responds with.
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { packSource } from '../../../src/cli/deploy/source-archive.ts';
import { findSourceFiles } from '../../../src/cli/deploy/source-files.ts';
import { Secret } from '../../../src/base/secret.ts';
import type { StormPlatform } from './deployment-storm-platform.ts';

/** In two parts, so that a search finds it in a leak, and not in this source. */
export const CANARY: string = ['canary-of-the-storm', '7Hq2Vx9RkT'].join('-');

/** What of a source takes its time: nothing, many files, or packages that nobody has installed before. */
export type SourceKind = 'small' | 'large' | 'new packages';

const FILES = 4_000;

export class StormSources {
  readonly #directory: string;
  #count = 0;

  /** `template`: of a graph with a constant `VERSION`. */
  static async create(directory: string, template: string): Promise<StormSources> {
    await cp(template, join(directory, 'small'), { recursive: true });
    await cp(template, join(directory, 'large'), { recursive: true });
    await mkdir(join(directory, 'large', 'data'));
    for (let nth = 0; nth < FILES; nth += 1)
      await writeFile(join(directory, 'large', 'data', `${nth}.txt`), `${nth}\n`.repeat(200));
    return new StormSources(directory);
  }

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** Packed, with the next number. */
  async next(
    kind: SourceKind,
  ): Promise<{ readonly version: number; readonly archive: Awaited<ReturnType<typeof packSource>> }> {
    this.#count += 1;
    const version = this.#count;
    const root = join(this.#directory, `version-${version}`);
    await cp(join(this.#directory, kind === 'large' ? 'large' : 'small'), root, { recursive: true });
    await edit(join(root, 'ticker.ts'), (text) => text.replace(/VERSION = \d+/, `VERSION = ${version}`));
    if (kind === 'new packages')
      await edit(join(root, 'package.json'), (text) => text.replace('{', `{ "description": "${version}",`));
    const { paths } = await findSourceFiles(root);
    const archive = await packSource(root, paths);
    await rm(root, { recursive: true });
    return { version, archive };
  }
}

async function edit(file: string, change: (text: string) => string): Promise<void> {
  await writeFile(file, change(await readFile(file, 'utf8')));
}

export type StormDeployment = {
  readonly id: string;
  readonly name: string;
  /** The number of each revision whose creation was responded to. */
  readonly versions: Map<string, number>;
};

export async function createDeployment(platform: StormPlatform, name: string): Promise<StormDeployment> {
  const secrets = new Map([['STORM_SECRET', new Secret(CANARY)]]);
  const { id } = await platform.plane.create(name, { secrets, proxyProfileId: undefined });
  return { id, name, versions: new Map() };
}

/** Resolves when the platform has the revision. */
export async function deploy(
  platform: StormPlatform,
  { id, versions }: StormDeployment,
  sources: StormSources,
  kind: SourceKind,
): Promise<void> {
  const { version, archive } = await sources.next(kind);
  await using _ = archive;
  const objectPath = await platform.plane.upload(id, () => archive.read(), archive.bytes);
  const { latest_revision_id: revisionId } = await platform.plane.change(id, {
    ...{ objectPath, configPath: 'langgraph.json', installCommand: undefined, buildCommand: undefined },
    ...{ secrets: new Map(), proxyProfileId: undefined },
  });
  if (revisionId !== undefined && revisionId !== null) versions.set(revisionId, version);
}

export type Asked = { readonly status: number; readonly version: number | undefined };

/** Runs the graph once; status 0: there was no response. */
export async function askVersion(platform: StormPlatform, id: string): Promise<Asked> {
  try {
    const response = await fetch(`${platform.gatewayOf(id)}/runs/wait`, {
      method: 'POST',
      headers: { 'X-Api-Key': platform.key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ assistant_id: 'ticker', input: { ticks: 0, pauseMs: 0 } }),
      signal: AbortSignal.timeout(20_000),
    });
    const body = (await response.json()) as { readonly version?: number };
    return { status: response.status, version: body.version };
  } catch {
    return { status: 0, version: undefined };
  }
}

/** A run that takes some seconds: what an agent server has in flight while it is replaced. */
export async function runForSeconds(platform: StormPlatform, id: string, seconds: number): Promise<void> {
  const input = { ticks: seconds * 4, pauseMs: 250 };
  await fetch(`${platform.gatewayOf(id)}/runs/wait`, {
    method: 'POST',
    headers: { 'X-Api-Key': platform.key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ assistant_id: 'ticker', input }),
  })
    .then((response) => response.text())
    .catch(() => undefined);
}

const EVERY_MS = 100;
/** A deployment responds as long as its last response is not older. */
const FRESH_MS = 2_000;

/** The first response of which none failed afterwards, and the last one. */
type Seen = { upMs: number | undefined; lastMs: number };

/** Asks each deployment whether it responds, all the time. */
export class StormProbes {
  readonly #platform: StormPlatform;
  readonly #seen = new Map<string, Seen>();
  readonly #running: Promise<void>[] = [];
  requests = 0;
  failed = 0;

  constructor(platform: StormPlatform) {
    this.#platform = platform;
  }

  add(id: string): void {
    const seen: Seen = { upMs: undefined, lastMs: 0 };
    this.#seen.set(id, seen);
    this.#running.push(this.#probe(id, seen));
  }

  /** Undefined: it does not respond. */
  respondsSince(id: string): number | undefined {
    const { upMs, lastMs = 0 } = this.#seen.get(id) ?? {};
    return Date.now() - lastMs < FRESH_MS ? upMs : undefined;
  }

  remove(id: string): void {
    this.#seen.delete(id);
  }

  async end(): Promise<void> {
    this.#seen.clear();
    await Promise.all(this.#running);
  }

  async #probe(id: string, seen: Seen): Promise<void> {
    while (this.#seen.get(id) === seen) {
      const sentMs = Date.now();
      const responds = await this.#ask(id);
      this.requests += 1;
      if (responds) {
        seen.lastMs = Date.now();
        seen.upMs ??= seen.lastMs;
      } else {
        this.failed += 1;
        seen.upMs = undefined;
      }
      await delay(Math.max(0, sentMs + EVERY_MS - Date.now()));
    }
  }

  async #ask(id: string): Promise<boolean> {
    try {
      const headers = { 'X-Api-Key': this.#platform.key };
      const url = `${this.#platform.gatewayOf(id)}/ok?check_db=1`;
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(5_000) });
      await response.text();
      return response.status === 200;
    } catch {
      return false;
    }
  }
}
