// The packet filter rules of the sidecar's init container, loaded by nft in a network namespace of the test's own: what the user of
// the proxy and what every other user can send. Needs root, nft and python3.
// @module-tag long
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createScratch } from '../support/scratch.ts';
import { projectRoot, runToEnd } from '../support/spawned-process.ts';

const PROXY = 10001;
const OTHERS = { agent: 20001, root: 0 };

// A destination outside: whatever is sent to it leaves the namespace, and nobody responds.
const SCENE = `
ip link set lo up
ip link add out type veth peer name far
ip link set far up
ip addr add 192.0.2.1/24 dev out
ip link set out up
ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:01 dev out
sh -euc "$RULES"
python3 -c "
import socket
server = socket.create_server(('127.0.0.1', 3128))
print('listening', flush=True)
while True: server.accept()
" > "$SCRATCH" &
server=$!
trap 'kill $server' EXIT
until grep -q listening "$SCRATCH"; do kill -0 $server; done
for user in $USERS; do
  python3 -c "$PROBE" $user
done
`;

const PROBE = `
import json, os, socket, sys
# The interpreter may be where no other user finds it.
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
def attempt(kind, address):
    client = socket.socket(socket.AF_INET, kind)
    client.settimeout(1)
    try:
        client.connect(address)
        client.send(b'x')
        return 'sent'
    except TimeoutError:
        return 'left, without a response'
    except OSError:
        return 'refused'
print(json.dumps({
    'user': int(sys.argv[1]),
    'proxy': attempt(socket.SOCK_STREAM, ('127.0.0.1', 3128)),
    'tcp': attempt(socket.SOCK_STREAM, ('192.0.2.2', 443)),
    'udp': attempt(socket.SOCK_DGRAM, ('192.0.2.2', 53)),
}))
`;

const isPossible =
  process.getuid?.() === 0 &&
  spawnSync('unshare', ['--net', 'nft', 'list', 'ruleset']).status === 0 &&
  spawnSync('python3', ['-V']).status === 0;

it.runIf(isPossible)('only the user of the proxy sends anything out of the Pod', async () => {
  await using scratch = await createScratch();
  const file = readFileSync(join(projectRoot, 'deploy', 'kubernetes', 'sidecar.yaml'), 'utf8');
  const [pod] = parseAllDocuments(file).map((one) => one.toJS());
  const [init] = pod.spec.initContainers;
  const users = [PROXY, ...Object.values(OTHERS)];
  const { stdout, stderr, code } = await runToEnd('unshare', ['--net', '--mount', 'sh', '-euc', SCENE], {
    env: {
      ...{ RULES: init.args[0], PROBE, USERS: users.join(' ') },
      SCRATCH: await scratch.write('output', ''),
    },
  });
  expect(code, stderr).toBe(0);
  const seen = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const others = Object.values(OTHERS).map((user) => ({
    user,
    proxy: 'sent',
    tcp: 'refused',
    udp: 'refused',
  }));
  expect(seen).toEqual([
    { user: PROXY, proxy: 'sent', tcp: 'left, without a response', udp: 'sent' },
    ...others,
  ]);
});
