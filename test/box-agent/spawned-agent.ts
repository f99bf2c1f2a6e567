// The agent as a process of its own, without a box, and the box host's end of its channel.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Socket } from 'node:net';
import { AgentChannel, type ChannelLimits } from '../../src/box-host/agents/agent-channel.ts';
import { findAgentProgram } from '../../src/box-host/agents/agent-program.ts';
import {
  type CallParams,
  type Ended,
  type Started,
  parseEnded,
  parseStarted,
} from '../../src/box-agent/protocol/messages.ts';
import { toAgentVariables } from '../../src/box-agent/protocol/variables.ts';
import { cleanEnvironment } from '../support/spawned-process.ts';

export type SpawnedAgent = AsyncDisposable & {
  readonly channel: AgentChannel;
  readonly process: ChildProcess;
};

/** The process alone; its channel is descriptor 3. */
export function spawnAgent(): { readonly child: ChildProcess; readonly stream: Socket } {
  const { source, entry, nodeArguments } = findAgentProgram();
  const child = spawn(process.execPath, [...nodeArguments, join(source, entry ?? '')], {
    stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
    env: { ...cleanEnvironment(), ...toAgentVariables(cleanEnvironment()) },
  });
  return { child, stream: child.stdio[3] as Socket };
}

export function startAgent(limits?: ChannelLimits): SpawnedAgent {
  const { child, stream } = spawnAgent();
  const exited = once(child, 'exit');
  const channel = new AgentChannel(stream, limits);
  return {
    channel,
    process: child,
    async [Symbol.asyncDispose]() {
      channel.close();
      child.kill('SIGKILL');
      await exited;
    },
  };
}

type ExecuteParams = Extract<CallParams, { readonly method: 'execute' }>;

export type Run = {
  readonly started: Started;
  readonly ended: Ended;
  readonly stdout: string;
  readonly stderr: string;
};

/** Runs a command to its end and takes all of its output. */
export async function run(
  channel: AgentChannel,
  command: string,
  params: Partial<ExecuteParams> = {},
  onCall: (call: ReturnType<typeof beginCommand>['call']) => void = () => undefined,
): Promise<Run> {
  const { call, output } = beginCommand(channel, command, params);
  onCall(call);
  const started = await call.head;
  const ended = await call.result;
  return { started, ended, stdout: output.stdout.join(''), stderr: output.stderr.join('') };
}

export function beginCommand(channel: AgentChannel, command: string, params: Partial<ExecuteParams> = {}) {
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const call = channel.call(
    { method: 'execute', command, shell: '/bin/sh', env: {}, cwd: null, stdin: false, ...params },
    {
      parseHead: parseStarted,
      parseResult: parseEnded,
      onData: (stream, bytes) => {
        output[stream].push(Buffer.from(bytes));
        call.grant(bytes.length);
      },
    },
  );
  return { call, output };
}
