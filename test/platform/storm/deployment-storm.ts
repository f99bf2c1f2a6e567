// kill -9 of the platform, the runner and agent servers, at random and in the middle of each step of a deployment, while deployments are
// made, changed and deleted. Each time rows and machine must agree again in time, and what was deployed must respond again.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { connectOnce } from '../../../src/platform/store/database.ts';
import { createRandom, type Random } from '../../http1/mutation.ts';
import {
  askVersion,
  CANARY,
  createDeployment,
  deploy,
  runForSeconds,
  type SourceKind,
  type StormDeployment,
  StormProbes,
  StormSources,
} from './deployment-storm-load.ts';
import { agentPidsOf, findDisagreements } from './deployment-storm-machine.ts';
import type { StormPlatform } from './deployment-storm-platform.ts';
import { type Stage, STAGES, lookBefore, waitForStage } from './deployment-storm-stages.ts';

const VICTIMS = ['platform', 'runner', 'agent server'] as const;
type Victim = (typeof VICTIMS)[number];

/** From the kill, or from when the action that it has hit was responded to. */
const AGREE_MS = 30_000;
/** From when the program that was killed runs again. */
const RESPOND_MS = 5_000;
const LOOK_MS = 250;
const RANDOM_MS = 4_000;
/** Of the first deployments, whose packages are installed for the first time. */
const BEGIN_MS = 180_000;

export type DeploymentStorm = {
  readonly kills: number;
  readonly seed: number;
  /** Of the graph that is deployed. */
  readonly template: string;
};

/** What is wrong; prints the figures. */
export async function runDeploymentStorm(
  platform: StormPlatform,
  given: DeploymentStorm,
): Promise<readonly string[]> {
  const sources = await StormSources.create(join(platform.scratch, 'sources'), given.template);
  await platform.start();
  const storm = new Storm(platform, sources, createRandom(given.seed));
  await storm.begin();
  for (let nth = 1; nth <= given.kills; nth += 1) await storm.round(nth);
  await storm.end();
  storm.print();
  return storm.problems;
}

class Storm {
  readonly problems: string[] = [];
  readonly #platform: StormPlatform;
  readonly #sources: StormSources;
  readonly #random: Random;
  readonly #probes: StormProbes;
  readonly #steady: StormDeployment[] = [];
  /** Created and deleted again and again. */
  #passing: StormDeployment | undefined;
  #passed = 0;
  readonly #killed = new Map<string, number>();
  readonly #outcomes = new Map<string, number>();
  readonly #agreedMs: number[] = [];
  readonly #respondedMs = new Map<Victim, number[]>();
  readonly #downMs: number[] = [];

  constructor(platform: StormPlatform, sources: StormSources, random: Random) {
    this.#platform = platform;
    this.#sources = sources;
    this.#random = random;
    this.#probes = new StormProbes(platform);
  }

  async begin(): Promise<void> {
    for (const name of ['one', 'two']) {
      const made = await createDeployment(this.#platform, name);
      this.#steady.push(made);
      await deploy(this.#platform, made, this.#sources, 'small');
    }
    const left = await this.#agree(Date.now() + BEGIN_MS);
    if (left.length > 0) throw new Error(`the storm cannot begin: ${left.join('; ')}`);
    for (const { id } of this.#steady) this.#probes.add(id);
  }

  async round(nth: number): Promise<void> {
    const stage = nth % 2 === 1 ? STAGES[((nth - 1) / 2) % STAGES.length] : undefined;
    const before = await lookBefore(this.#platform);
    if (stage === 'deletion') await this.#needPassing();
    const actions = Promise.allSettled(this.#act(stage));
    const hasCome =
      stage === undefined
        ? await delay(this.#random(RANDOM_MS), true)
        : await waitForStage(this.#platform, stage, before, this.#random);
    const moment = `${stage ?? 'random'}${hasCome ? '' : ' (missed)'}`;
    const victim = this.#chooseVictim(stage);
    add(this.#killed, `${victim}, ${moment}`);
    const killedMs = Date.now();
    const backMs = await this.#kill(victim);
    for (const result of await actions)
      if (result.status === 'rejected') add(this.#outcomes, `lost: ${String(result.reason).slice(0, 60)}`);
    const name = `kill ${nth} (${victim}, ${moment})`;
    const left = await this.#agree(Math.max(killedMs, Date.now()) + AGREE_MS);
    this.problems.push(...left.map((one) => `${name}: ${one}, after 30 s`));
    if (left.length > 0) await this.#printHistory();
    this.#agreedMs.push(Date.now() - killedMs);
    this.#checkResponses(name, victim, { killedMs, backMs });
    await this.#checkOutcomes(name, victim);
    console.log(
      `  ${nth}: ${victim}, ${moment}: agreed after ${((Date.now() - killedMs) / 1000).toFixed(1)} s${left.length > 0 ? `, BROKEN: ${left.join('; ')}` : ''}`,
    );
    if (nth % 10 === 0) this.problems.push(...(await findSecrets(this.#platform)));
  }

  #chooseVictim(stage: Stage | undefined): Victim {
    // Nothing of an agent server is part of the other steps.
    const some =
      stage === undefined || stage === 'switch' || stage === 'drain' ? VICTIMS : VICTIMS.slice(0, 2);
    return some[this.#random(some.length)] ?? 'runner';
  }

  /** What is under way when it is killed. */
  #act(stage: Stage | undefined): readonly Promise<void>[] {
    const [one, two] = this.#steady;
    if (one === undefined || two === undefined) throw new Error('the storm has not begun');
    const put = (to: StormDeployment, kind: SourceKind) => deploy(this.#platform, to, this.#sources, kind);
    if (stage === 'unpacking') return [put(one, 'large')];
    if (stage === 'installation') return [put(two, 'new packages')];
    if (stage === 'database') return [this.#create()];
    if (stage === 'switch') return [put(one, 'small')];
    if (stage === 'drain') return [runForSeconds(this.#platform, two.id, 30), put(two, 'small')];
    if (stage === 'deletion') return [this.#delete()];
    const choices = [
      () => [put(one, 'small')],
      () => [put(one, 'small'), put(two, 'large')],
      () => [put(two, 'small').then(() => put(two, 'small'))],
      () => [this.#passing === undefined ? this.#create() : this.#delete()],
      () => [],
    ];
    return choices[this.#random(choices.length)]?.() ?? [];
  }

  async #create(): Promise<void> {
    if (this.#passing !== undefined) await this.#delete();
    this.#passed += 1;
    const made = await createDeployment(this.#platform, `passing-${this.#passed}`);
    this.#passing = made;
    await deploy(this.#platform, made, this.#sources, 'small');
  }

  async #delete(): Promise<void> {
    const gone = this.#passing;
    this.#passing = undefined;
    if (gone !== undefined) await this.#platform.plane.delete(gone.id);
  }

  async #needPassing(): Promise<void> {
    if (this.#passing !== undefined) return;
    await this.#create();
    const left = await this.#agree(Date.now() + AGREE_MS);
    this.problems.push(...left.map((one) => `before a deletion: ${one}`));
  }

  /** Resolves with the moment at which what was killed runs again. */
  async #kill(victim: Victim): Promise<number> {
    const platform = this.#platform;
    const { runnerPid } = platform;
    if (victim === 'agent server') {
      const pids = agentPidsOf(platform);
      const pid = pids[this.#random(pids.length)];
      if (pid === undefined) return Date.now();
      process.kill(pid, 'SIGKILL');
      const deadlineMs = Date.now() + AGREE_MS;
      // One that was drained is not started again.
      while (Date.now() < deadlineMs) {
        const now = agentPidsOf(platform);
        if (
          now.some((one) => !pids.includes(one)) ||
          (!now.includes(pid) && now.length > this.#steady.length)
        )
          break;
        await delay(20);
      }
      return Date.now();
    }
    process.kill(victim === 'platform' ? platform.pid : runnerPid, 'SIGKILL');
    if (victim === 'platform') await platform.start();
    return platform.runnerAfter(runnerPid);
  }

  /** What is wrong at that moment; empty as soon as all agree. */
  async #agree(deadlineMs: number): Promise<readonly string[]> {
    for (;;) {
      const left = [...(await findDisagreements(this.#platform)), ...(await this.#findWrongVersions())];
      if (left.length === 0 || Date.now() > deadlineMs) return left;
      await delay(LOOK_MS);
    }
  }

  /** Each deployment responds with the number of the revision that is active. */
  async #findWrongVersions(): Promise<readonly string[]> {
    const all = [...this.#steady, ...(this.#passing === undefined ? [] : [this.#passing])];
    const found = await Promise.all(
      all.map(async ({ id, name, versions }) => {
        const active = (
          await this.#read<{ id: string | null }>(
            'select active_revision_id as id from deployments where id = $1',
            [id],
          )
        )[0]?.id;
        const expected = versions.get(active ?? '');
        // Its creation was not responded to.
        if ((active ?? undefined) === undefined && versions.size === 0) return [];
        const asked = await askVersion(this.#platform, id);
        const isRight = asked.status === 200 && (expected === undefined || asked.version === expected);
        return isRight
          ? []
          : [`${name} responds with ${asked.status}, version ${asked.version}, not ${expected}`];
      }),
    );
    return found.flat();
  }

  #checkResponses(
    name: string,
    victim: Victim,
    at: { readonly killedMs: number; readonly backMs: number },
  ): void {
    for (const deployment of this.#steady) {
      const since = this.#probes.respondsSince(deployment.id);
      const ms = since === undefined ? Number.POSITIVE_INFINITY : Math.max(0, since - at.backMs);
      this.#respondedMs.set(victim, [...(this.#respondedMs.get(victim) ?? []), ms]);
      if (since !== undefined && since > at.killedMs) this.#downMs.push(since - at.killedMs);
      if (ms > RESPOND_MS)
        this.problems.push(`${name}: ${deployment.name} responded ${ms} ms after the ${victim} ran again`);
    }
  }

  /** Every revision whose creation was responded to is there, and has ended as it may. */
  async #checkOutcomes(name: string, victim: Victim): Promise<void> {
    for (const { id, versions, name: deployment } of this.#steady) {
      const rows = await this.#read<{ id: string; status: string; reason: string | null }>(
        `select r.id, r.status, (select reason from revision_moves m where m.revision_id = r.id order by m.id desc limit 1)
          from revisions r where r.deployment_id = $1 order by r.number`,
        [id],
      );
      const [active] = await this.#read<{ id: string }>(
        'select active_revision_id as id from deployments where id = $1',
        [id],
      );
      const newest = rows.findLast(({ status }) => status === 'DEPLOYED');
      if (active?.id !== newest?.id) this.problems.push(`${name}: ${deployment} has not the newest revision`);
      const seen = this.#seen.get(id) ?? new Set();
      this.#seen.set(id, seen);
      for (const { id: revisionId, status, reason } of rows) {
        if (seen.has(revisionId)) continue;
        seen.add(revisionId);
        add(this.#outcomes, status);
        const isOfKill = status === 'DEPLOY_FAILED' && victim === 'agent server';
        if (!isOfKill && !['DEPLOYED', 'SKIPPED', 'INTERRUPTED', 'CREATING'].includes(status))
          this.problems.push(`${name}: a revision of ${deployment} is ${status}: ${reason}`);
      }
      for (const revisionId of versions.keys())
        if (!rows.some((row) => row.id === revisionId))
          this.problems.push(`${name}: the revision ${revisionId} of ${deployment} is lost`);
    }
  }

  /** Of what did not agree: the last moves of revisions, lines of builds, and complaints of the processes. */
  async #printHistory(): Promise<void> {
    const lines = await this.#read<{ at: Date; text: string }>(
      `select * from (
        select at, concat_ws(' ', 'move', revision_id, from_status, to_status, reason) as text from revision_moves
        union all select at, concat_ws(' ', kind, deployment_id, revision_id, message) from deployment_logs
        union all select now(), concat_ws(' ', 'build', id, attempts, runner_id, directory, removed_at) from builds
      ) every order by at desc limit 40`,
      [],
    );
    for (const { at, text } of lines.toReversed())
      console.log(`    ${at.toISOString()} ${text.slice(0, 300)}`);
    for (const line of this.#platform.complaints.slice(-20)) console.log(`    ${line.slice(0, 300)}`);
  }

  readonly #seen = new Map<string, Set<string>>();

  async #read<T>(text: string, values: readonly unknown[]): Promise<readonly T[]> {
    const found = await connectOnce(this.#platform.owner, (client) => client.query(text, [...values]));
    return found.rows as T[];
  }

  /** Deletes all, and ends the platform: nothing may be left. */
  async end(): Promise<void> {
    await this.#probes.end();
    const platform = this.#platform;
    this.problems.push(...(await findSecrets(platform)));
    await this.#delete();
    for (const { id } of this.#steady.splice(0)) await platform.plane.delete(id);
    const left = await this.#agree(Date.now() + AGREE_MS);
    this.problems.push(...left.map((one) => `when all was deleted: ${one}`));
    await platform.end();
    const after = await findDisagreements(platform);
    this.problems.push(...after.map((one) => `when all had ended: ${one}`));
    for (const url of [platform.gatewayOf('')].map((one) => new URL(one)))
      if (await isOpen(Number(url.port)))
        this.problems.push(`when all had ended: the port ${url.port} is open`);
  }

  print(): void {
    const show = (counts: ReadonlyMap<string, number>): string =>
      [...counts]
        .toSorted()
        .map(([what, some]) => `${some} x ${what}`)
        .join('\n    ');
    console.log(`  killed:\n    ${show(this.#killed)}`);
    console.log(`  revisions:\n    ${show(this.#outcomes)}`);
    console.log(`  rows and machine agreed after the kill: ${report(this.#agreedMs)}`);
    for (const [victim, samples] of this.#respondedMs)
      console.log(`  responds again after the ${victim} runs again: ${report(samples)}`);
    console.log(`  did not respond, from the kill on: ${report(this.#downMs)}`);
    console.log(`  probes: ${this.#probes.requests}, of which ${this.#probes.failed} failed`);
  }
}

/** The canary may be nowhere in plaintext but in the memory of the agent server. */
async function findSecrets({ scratch, pid, runnerPid }: StormPlatform): Promise<readonly string[]> {
  const places = [
    join(scratch, 'data'),
    join(scratch, 'server'),
    `/proc/${pid}/environ`,
    `/proc/${runnerPid}/environ`,
  ];
  const found = await promisify(execFile)('grep', ['-rlaF', CANARY, ...places]).catch(({ stdout }) => ({
    stdout,
  }));
  return String(found.stdout)
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((one) => `the secret is in ${one}`);
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isConnected = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  socket.destroy();
  return isConnected;
}

function add(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

function report(samples: readonly number[]): string {
  if (samples.length === 0) return 'none';
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(0);
  return `${sorted.length}, p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, max ${at(1)} ms`;
}
