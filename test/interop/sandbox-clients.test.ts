// The public clients of sandboxes, unchanged, through the life of a box that bubblewrap isolates; the platform is killed in the middle.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled, runSandboxClient, type SandboxClientName, type Steps } from './sandbox-clients.ts';
import {
  createSandboxPlatform,
  ORIGIN_HOST,
  type SandboxPlatform,
  SECRET_VALUE,
} from './sandbox-platform.ts';

const names: readonly SandboxClientName[] = [
  'langsmith-sandbox-js',
  'langsmith-generated-js',
  'langsmith-sandbox-python',
];
const anyInstalled = names.some(isInstalled);
const title = (name: SandboxClientName): string =>
  isInstalled(name) ? name : `${name} (skipped: not installed)`;

let platform: SandboxPlatform;
beforeAll(async () => {
  if (anyInstalled) platform = await createSandboxPlatform();
}, 120_000);
afterAll(() => platform?.[Symbol.asyncDispose]());

/** Says what it was asked for, in one response. perl is part of every Debian. */
const SERVER = `use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 8000, Listen => 5, ReuseAddr => 1) or die;
while (my $client = $server->accept) {
  my ($line) = (<$client> =~ /^(\\S+ \\S+)/);
  my $token = 'no token';
  while (<$client>) { $token = 'token' if /^x-langsmith-sandbox-service-token:/i; last if /^\\r?$/; }
  my $body = "$line $token";
  print $client "HTTP/1.1 200 OK\\r\\nContent-Length: @{[length $body]}\\r\\nConnection: close\\r\\n\\r\\n$body";
  close $client;
}
`;

async function onAsked(what: string): Promise<unknown> {
  if (what === 'server') return SERVER;
  if (what === 'restart') return platform.restart();
  if (what === 'stop the database') return platform.holdDatabase();
  if (what === 'continue the database') return platform.releaseDatabase();
  throw new Error(`a client asks for ${what}`);
}

function run(name: SandboxClientName): Promise<Steps> {
  const { url, key, viewerKey, origin } = platform;
  return runSandboxClient(name, [url, key, viewerKey, `${ORIGIN_HOST}:${origin.port}`], onAsked);
}

const lifeOf = (name: string): Readonly<Record<string, unknown>> => ({
  create: [name, 'ready', 'string', 'string'],
  'create without waiting': 'provisioning',
  wait: 'ready',
  list: [name, 'later'].toSorted(),
  get: true,
  status: 'ready',
  update: ['renamed', 600],
  curl: { stdout: '200', stderr: '', exit_code: 0 },
  run: { stdout: 'b\n/tmp\n', stderr: 'e\n', exit_code: 3 },
  callbacks: ['one\n', 'two\n'],
  'stdin and kill': ['got input\n', 137],
  restart: [true, true, 0],
  reconnect: true,
  read: 'héllo',
  bytes: true,
  stat: 10,
  range: ['234', true, 2, 10],
  suffix: '89',
  unchanged: true,
  changed: false,
  glob: ['/tmp/found/sub/y.py', '/tmp/found/x.py'],
  ls: [
    ['/tmp/found/sub', true],
    ['/tmp/found/x.py', false],
  ],
  grep: [
    { path: '/tmp/found/sub/y.py', line: 1, text: 'TODO too' },
    { path: '/tmp/found/x.py', line: 2, text: 'TODO' },
  ],
  service: [200, 'GET /a/path?b=c no token'],
  'service without its token': 401,
  stop: 'stopped',
  'run in a stopped one': 'héllo',
  start: 'ready',
});

/** By the class of the client and the field that programs read. */
const errors = {
  timeout: ['CommandTimeoutError', 'CommandTimeout'],
  'reconnect to nothing': ['SandboxOperationError', 'CommandNotFound'],
  'no file': ['ResourceNotFoundError', null],
  'no permission': ['SandboxOperationError', 'PermissionDenied'],
  '401': ['SandboxAuthenticationError', null],
  '403': ['SandboxAuthenticationError', null],
  '404': ['ResourceNotFoundError', null],
  '408': ['ResourceTimeoutError', null],
  '409': ['ResourceNameConflictError', null],
  // The last part of `body.proxy_config.rules.0.match_hosts.0`.
  '422': ['ValidationError', 0],
  '422 for a secret': ['ValidationError', 'value'],
  '422 of an update': ['ValidationError', 0],
  '429 memory': ['QuotaExceededError', 'memory'],
  '429 cpu': ['QuotaExceededError', 'cpu'],
  '429 storage': ['QuotaExceededError', 'storage'],
  '429 count': ['QuotaExceededError', 'sandbox_count'],
  delete: ['ResourceNotFoundError', null],
};

describe.each([
  ['langsmith-sandbox-js', 'javascript', 'SandboxCreationError'],
  ['langsmith-sandbox-python', 'python', 'ResourceCreationError'],
] as const)('a hand-written client', (name, box, creationError) => {
  it.runIf(isInstalled(name))(
    `${title(name)} lives with a sandbox`,
    { tags: ['long'], timeout: 300_000 },
    async () => {
      const before = platform.origin.requests.length;
      const steps = await run(name);
      expect(Object.fromEntries(steps)).toMatchObject({
        ...lifeOf(box),
        ...errors,
        '503': [creationError, 'Unavailable'],
      });
      const received = platform.origin.requests.slice(before).map(({ headers }) => headers);
      expect(received.map((headers) => headers.find(([field]) => field === 'X-Key')?.[1])).toEqual([
        `Bearer ${SECRET_VALUE}`,
      ]);
      expect(JSON.stringify([...steps])).not.toContain(SECRET_VALUE);
    },
  );
});

describe('the generated client', () => {
  const name = 'langsmith-generated-js';
  it.runIf(isInstalled(name))(
    `${title(name)} lives with a sandbox`,
    { tags: ['long'], timeout: 300_000 },
    async () => {
      expect(Object.fromEntries(await run(name))).toMatchObject({
        create: ['generated', 'string', { a: 'b' }],
        wait: 'ready',
        list: ['generated'],
        get: true,
        update: 600,
        stop: 'stopped',
        start: 'ready',
        service: ['string', 'string', 'string'],
        '401': ['AuthenticationError', null],
        '403': ['PermissionDeniedError', null],
        '404': ['NotFoundError', null],
        '409': ['ConflictError', null],
        '422': ['UnprocessableEntityError', null],
        delete: ['NotFoundError', null],
      });
    },
  );
});
