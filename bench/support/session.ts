// One run of the benchmark: starts the scene and everything that is compared, asks the questions within their time, and
// collects the report.
import { join } from 'node:path';
import { questionsOf, shareOf } from '../cases/all-questions.ts';
import { peersOf } from '../peers/all-peers.ts';
import { keepCoresAwake } from './awake-cores.ts';
import type { Children } from './children.ts';
import { inspectMachine, warningsOf } from './machine.ts';
import { startLoadClient } from './measure.ts';
import type { Options } from './options.ts';
import { otherLoadWarnings, watchOtherLoad } from './other-load.ts';
import { describeProduct } from './product.ts';
import { type Question, type Stage, createTurns } from './question.ts';
import { type Asked, type Report, createReport } from './report.ts';
import { drain, startSallyport } from './sallyport.ts';
import { createScene } from './scene.ts';
import { directSubject } from './subject.ts';
import { commonSuite, suiteWarnings } from './tls-suites.ts';
import { sallyportSubjects, startPeers, startRelay, withoutRecords } from './subjects.ts';

const MESSAGE_CHARS = 300;
const projectRoot: string = join(import.meta.dirname, '..', '..');

export type Session = {
  readonly directory: string;
  readonly packageDirectory: string;
  readonly options: Options;
};

export async function runQuestions(
  children: Children,
  { directory, packageDirectory, options }: Session,
): Promise<Report> {
  const { level, effort } = options;
  const started = new Date();
  const startedMs = performance.now();
  // The bundle was built before.
  const machine = await inspectMachine(children.isPinned);
  const warnings = warningsOf(machine);
  warnings.forEach((warning) => say(`WARNING: ${warning}`));
  keepCoresAwake(children);
  await using scene = await createScene(children, directory);
  const profileDirectory = options.profile;
  const sallyport = await startSallyport(children, scene, { packageDirectory, profileDirectory });
  const relay = await startRelay(children, scene);
  const peers = await startPeers(peersOf(level, options.peers), children, scene, say);
  const quiet = level === 'full' ? [await withoutRecords(children, scene, packageDirectory)] : [];
  const client = startLoadClient(children, scene);
  const processes = children.list();
  // As others can type them: without the folders of this machine and the credential of this run.
  const shorten = (command: string): string =>
    [
      [process.execPath, 'node'],
      [directory, 'DIR'],
      [projectRoot, '.'],
      [scene.credential, 'CREDENTIAL'],
    ].reduce((text, [long = '', short = '']) => text.replaceAll(long, short), command);
  say(`processes ${processes.map(({ name, pid }) => `${name} ${pid}`).join(', ')}`);

  const ours = sallyportSubjects(scene, sallyport);
  const subjects = [directSubject(scene), relay, ...ours, ...quiet, ...peers.subjects];
  const stage = { children, scene, client, sallyport, packageDirectory, subjects, effort, say };
  const otherLoad = watchOtherLoad();
  // A peer that cannot do something is left out of it with its error, and the run goes on.
  const failures: string[] = [];
  const asked = await ask(stage, questionsOf(level, options.only), options.seconds, {
    peers: peers.subjects.map(({ name }) => name),
    failures,
    onRound: otherLoad.sample,
  });
  const other_load = otherLoad.result();
  const tls = client.suites();
  if (options.profile !== undefined) await drain(sallyport.child);
  return createReport({
    asked,
    subjects,
    machine,
    warnings: [...warnings, ...otherLoadWarnings(other_load), ...suiteWarnings(tls)],
    skipped: [...peers.skipped, ...failures],
    versions: { node: process.version, ...peers.versions },
    commands: Object.fromEntries(processes.map(({ name, command }) => [name, shorten(command)])),
    suite: commonSuite(tls) ?? 'none',
    tls,
    sallyport: describeProduct(options.package),
    other_load,
    effort,
    callback_calls: scene.callbackCalls(),
    started: started.toISOString(),
    seconds: (performance.now() - startedMs) / 1000,
  });
}

type Asking = {
  readonly peers: readonly string[];
  readonly failures: string[];
  onRound(): void;
};

/** Each question gets its share of the time, and what the ones before it left. */
async function ask(
  stage: Omit<Stage, 'measure'>,
  questions: readonly Question[],
  seconds: number,
  { peers, failures, onRound }: Asking,
): Promise<readonly Asked[]> {
  const asked: Asked[] = [];
  const startMs = performance.now();
  const all = questions.reduce((sum, question) => sum + shareOf(question), 0);
  let share = 0;
  for (const question of questions) {
    share += shareOf(question);
    const untilMs = startMs + (seconds * 1000 * share) / all;
    let recordedBytes = 0;
    const measure = createTurns(stage.effort, {
      untilMs,
      onRound(round) {
        recordedBytes += stage.sallyport.emptyRecords();
        onRound();
        stage.say(`${question.name}: round ${round}`);
      },
      isOptional({ subject }, error) {
        const isPeer = peers.includes(subject);
        if (isPeer) failures.push(error.message.replaceAll(/\s+/g, ' ').slice(0, MESSAGE_CHARS));
        return isPeer;
      },
    });
    const findings = await question.measure({ ...stage, measure });
    const isMeasured = findings.series.some(
      ({ subject, rounds }) => subject === 'rule' && rounds[0]?.['cpu_us'],
    );
    // With an empty file the proxy would have been measured without writing records.
    if (isMeasured && recordedBytes === 0) throw new Error(`${question.name}: no records were written`);
    asked.push({ question, findings });
  }
  return asked;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
