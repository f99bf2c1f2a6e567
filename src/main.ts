// The front door: reads the command and loads ONE program. A start failure is one line and an exit code:
// 2 for input that should be mended, 1 for everything else.
const commands: Readonly<Record<string, () => Promise<{ run(args: string[]): Promise<number> }>>> = {
  proxy: () => import('./cli/proxy.ts'),
  run: () => import('./cli/run.ts'),
  env: () => import('./cli/env.ts'),
  check: () => import('./cli/check.ts'),
  start: () => import('./cli/start.ts'),
  demo: () => import('./cli/demo.ts'),
  platform: () => import('./cli/platform.ts'),
  audit: () => import('./cli/audit.ts'),
};

/** How long what a program has left open may keep the process. */
const MAX_REST_MS = 250;

const usage = `usage: sallyport COMMAND [OPTIONS]

  proxy   run the proxy: --config FILE, --proxy-config FILE, --listen HOST:PORT, --state-dir DIR,
          --secrets-dir DIR, --secrets-file FILE, --secrets-fd N
  run     run a command behind a proxy of its own: run [OPTIONS] -- CMD ARGS...; options as for proxy,
          but no --listen, and --log FILE (- is standard error) for its records
  env     print the variables for a proxy that runs: eval "$(sallyport env)"; --config, --proxy-config,
          --listen, --state-dir
  check   validate files: check FILE...
  start   run the proxy beside a local TLS echo origin, on the example configuration
  demo    show an injected credential end to end
  platform
          run the platform's API: platform [--config FILE] [--listen HOST:PORT] [--data-dir DIR]; with
          'platform init' make its first organization and key, with 'platform recover' another key; each
          is printed once
  audit   say whether the platform's audit log was tampered with: audit verify [--organization ID]
          [--config FILE] [--data-dir DIR] [--checkpoints PLACE] [--public-key FILE]...

Every key of the config file has a variable: SALLYPORT_LISTEN, SALLYPORT_PROXY_CONFIG, and so on.
`;

const [name = '', ...args] = process.argv.slice(2);
const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
if (name === '--help' || name === 'help') {
  process.stdout.write(usage);
} else if (!load) {
  process.stderr.write(usage);
  process.exitCode = 2;
} else {
  try {
    process.exitCode = await (await load()).run(args);
  } catch (error) {
    process.stderr.write(`sallyport: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = isInputError(error) ? 2 : 1;
  }
  // A log line that nobody reads would keep it for ever.
  setTimeout(() => process.exit(), MAX_REST_MS).unref();
}

/** By name and code, since the class lives in a program that is loaded only when it is asked for. */
function isInputError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    error.name === 'InputError' || String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS')
  );
}
