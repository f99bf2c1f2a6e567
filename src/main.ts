// The entry point: reads the command and loads its program only. A failure is one line and an exit code: 2 for input that
// must be corrected, 1 for everything else.
const commands: Readonly<Record<string, () => Promise<{ run(args: string[]): Promise<number> }>>> = {
  proxy: () => import('./cli/proxy.ts'),
  run: () => import('./cli/run.ts'),
  env: () => import('./cli/env.ts'),
  check: () => import('./cli/check.ts'),
  explain: () => import('./cli/explain.ts'),
  doctor: () => import('./cli/doctor.ts'),
  status: () => import('./cli/status.ts'),
  tail: () => import('./cli/records/tail.ts'),
  ca: () => import('./cli/ca.ts'),
  start: () => import('./cli/start.ts'),
  demo: () => import('./cli/demo.ts'),
  platform: () => import('./cli/platform.ts'),
  audit: () => import('./cli/audit.ts'),
  runner: () => import('./cli/platform/runner.ts'),
  'export-worker': () => import('./cli/platform/export-worker.ts'),
  'agent-server': () => import('./cli/agent-server.ts'),
  deploy: () => import('./cli/deploy/deploy.ts'),
  'box-host': () => import('./cli/boxes/box-host.ts'),
};

/** These write by descriptor, because their reader may stop (base/log.ts), and the streams would delay their start. */
const serving: ReadonlySet<string> = new Set([
  'proxy',
  'run',
  'start',
  'platform',
  'runner',
  'export-worker',
  'agent-server',
  'box-host',
]);

/** How long open handles may keep the process after the program has ended. */
const MAX_REST_MS = 250;

const [name = '', ...args] = process.argv.slice(2);
const load = Object.hasOwn(commands, name) && !asksForHelp(args) ? commands[name] : undefined;
const output = load !== undefined && serving.has(name) ? undefined : process.stdout;
for (const stream of output ? [output, process.stderr] : []) stream.on('error', onOutputError);
try {
  process.exitCode =
    load === undefined
      ? await (await import('./cli/command/help.ts')).run(name, args)
      : await (await load()).run(args);
} catch (error) {
  process.stderr.write(`sallyport: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = isInputError(error) ? 2 : 1;
}
// A log line that its reader does not take would keep the process for ever; what a command prints waits for its reader.
const exit = (): never => process.exit();
setTimeout(() => (output ? output.write('', exit) : exit()), MAX_REST_MS).unref();

/** A reader may end before the output does, as `head` does. */
function onOutputError({ code }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') return;
  process.stderr.write(`sallyport: the output cannot be written (${code})\n`);
  process.exit(1);
}

/** What follows `--` belongs to another program. */
function asksForHelp(all: readonly string[]): boolean {
  const own = all.includes('--') ? all.slice(0, all.indexOf('--')) : all;
  return own.includes('--help') || own.includes('-h');
}

/** By name, because the class belongs to a program that is loaded on demand. */
function isInputError(error: unknown): boolean {
  return error instanceof Error && error.name === 'InputError';
}
