// The obvious design as a target of the `message` rows: its own origins, and a child process that is restarted after a row
// has crashed it. Independent of how rows are evaluated.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { publicAuthority } from '../../invariants/credential-scene.ts';
import { cleanEnvironment } from '../../support/spawned-process.ts';
import { WireClient } from '../../support/wire-client.ts';
import type { MessageTarget } from '../message/message-driver.ts';
import { type MessageOrigins, createMessageOrigins, names } from '../message/message-origins.ts';
import { type PolicyName, SECRET, messagePolicies } from '../message/message-policies.ts';
import { valuesAt } from '../message/message-scene.ts';
import type { ObviousCommand, ObviousReply } from './obvious-proxy.ts';
import type { ObviousRule } from './obvious-policy.ts';

export type ObviousLane = AsyncDisposable & {
  /** The target with the rules of that policy in force. */
  target(policy: PolicyName): Promise<MessageTarget>;
  /** Waits until nothing of the row is in progress; returns true if the process has crashed. */
  settle(): Promise<boolean>;
};

/** The obvious design does not signal what it omits: a row waits this long for a response or a close. */
const PATIENCE_MS = 250;

export async function createObviousLane(): Promise<ObviousLane> {
  const origins = await createMessageOrigins(publicAuthority);
  let running = await startObvious(origins);
  let inForce: PolicyName | undefined;
  return {
    async target(policy) {
      if (policy !== inForce) await running.ask({ rules: rulesOf(policy) });
      inForce = policy;
      return toTarget(origins, running, policy);
    },
    async settle() {
      const reply = await running.ask({ settle: true });
      // The origins in this process read its last bytes before they see the end of its connections.
      while (origins.all.some(({ openConnections }) => openConnections > 0))
        await new Promise((resolve) => setImmediate(resolve));
      if (reply) return false;
      running = await startObvious(origins);
      inForce = undefined;
      return true;
    },
    async [Symbol.asyncDispose]() {
      running.child.kill('SIGKILL');
      await origins[Symbol.asyncDispose]();
    },
  };
}

type Running = {
  readonly child: ChildProcess;
  readonly port: number;
  readonly caPem: string;
  /** Undefined if the process has died. */
  ask(command: ObviousCommand): Promise<ObviousReply | undefined>;
};

async function startObvious(origins: MessageOrigins): Promise<Running> {
  const program = join(import.meta.dirname, 'obvious-proxy.ts');
  const child = fork(program, {
    env: cleanEnvironment(),
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [],
  });
  const dead = once(child, 'exit').then(() => undefined);
  const ask = async (command: ObviousCommand): Promise<ObviousReply | undefined> => {
    if (child.exitCode !== null || child.signalCode !== null || !child.connected) return undefined;
    const replied = once(child, 'message').then(([message]) => message as ObviousReply);
    child.send(command, () => undefined);
    return Promise.race([replied, dead]);
  };
  const ready = await ask({
    start: {
      upstreamCa: publicAuthority.certificatePem,
      names,
      cleartext: [`api.test:${origins.own.plain.port}`],
      secrets: { TOKEN: SECRET },
    },
  });
  if (ready?.port === undefined || ready.caPem === undefined)
    throw new Error('the obvious design did not start');
  return { child, port: ready.port, caPem: ready.caPem, ask };
}

function rulesOf(policy: PolicyName): readonly ObviousRule[] {
  const { rules } = messagePolicies[policy].document as { readonly rules?: readonly ObviousRule[] };
  return rules ?? [];
}

function toTarget(origins: MessageOrigins, { port, caPem }: Running, policy: PolicyName): MessageTarget {
  return {
    open: (entryPoint) =>
      entryPoint === 'plain'
        ? WireClient.connect(port)
        : WireClient.connectThrough(port, `api.test:${origins.own.tunnel.port}`, {
            ca: caPem,
            name: 'api.test',
          }),
    origins: origins.all,
    values: (entryPoint) => valuesAt(origins, policy, entryPoint),
    patienceMs: PATIENCE_MS,
    ends: false,
  };
}
