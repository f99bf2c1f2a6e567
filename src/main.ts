// The entry point: reads the command and loads its program only. A failure is one line and an exit code: 2 for input that
// must be corrected, 1 for everything else.
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

/** How long open handles may keep the process after the program has ended. */
const MAX_REST_MS = 250;

const usage = `usage: sallyport COMMAND [OPTIONS]

  proxy [OPTIONS]             run the proxy
  run [OPTIONS] -- CMD...     run a command behind a proxy of its own
  env [OPTIONS]               print the variables for a running proxy: eval "$(sallyport env)"
  check FILE...               validate config and proxy_config files
  start                       run the proxy and a local TLS echo origin with the example configuration
  demo                        show an injected credential from start to end
  platform [OPTIONS]          run the platform API
  platform init [OPTIONS]     create the platform's first organization and API key; the key is shown once
  platform recover [OPTIONS]  create another API key for an organization; the key is shown once
  audit verify [OPTIONS]      check the platform's audit log for tampering

Options of proxy, run and env:
  --config FILE               config file
  --proxy-config FILE         rules
  --listen HOST:PORT          address of the proxy (not run)
  --admin-listen ADDRESS      address of the admin API: HOST:PORT, unix:/PATH or off (proxy only)
  --state-dir DIR             state directory
  --secrets-dir DIR           directory with one secret in each file (not env)
  --secrets-file FILE         file of NAME=value lines (not env)
  --secrets-fd N              file descriptor to read secrets from (not env)
  --log FILE                  file for the log and the records; - is standard error (run only)

Options of platform:          --config FILE, --listen HOST:PORT, --data-dir DIR
Options of audit verify:      --organization ID, --config FILE, --data-dir DIR, --checkpoints LOCATION,
                              --public-key FILE (repeatable)

Every key of the config file has a variable, for example SALLYPORT_LISTEN for listen.
`;

const [name = '', ...args] = process.argv.slice(2);
const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
if (name === '--help' || name === 'help') {
  process.stdout.write(usage);
} else if (!load) {
  if (name !== '') process.stderr.write(`sallyport: unknown command '${name}'\n\n`);
  process.stderr.write(usage);
  process.exitCode = 2;
} else {
  try {
    process.exitCode = await (await load()).run(args);
  } catch (error) {
    process.stderr.write(`sallyport: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = isInputError(error) ? 2 : 1;
  }
  // A log line that its reader does not take would keep the process for ever.
  setTimeout(() => process.exit(), MAX_REST_MS).unref();
}

/** By name and code, because the class belongs to a program that is loaded on demand. */
function isInputError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    error.name === 'InputError' || String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS')
  );
}
