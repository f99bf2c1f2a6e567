// What a platform hands to a program that it starts, on a pipe: settings, which may contain a password, and the variables of other programs
// that it uses. The pipe stays open as long as the platform lives, however it ends.
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { z } from '../../base/schema.ts';

/** Names the descriptor. */
export const PARENT_INPUT_VARIABLE = 'SALLYPORT_PARENT_INPUT';
export const PARENT_INPUT_DESCRIPTOR = 3;

const schema = z.strictObject({
  /** Of the config file. */
  document: z.unknown(),
  /** That set settings. */
  variables: z.record(z.string(), z.string()),
  /** Of package managers, and of the client of S3. */
  environment: z.record(z.string(), z.string()),
});
export type ParentInput = z.output<typeof schema>;

/** Variables that package managers, which read theirs in any case, and the client of S3 read. They may contain a password. */
const OF_PROGRAMS = /^(?:AWS_|(?:npm_config_|PIP_)|(?:XDG_CONFIG_(?:HOME|DIRS)|VIRTUAL_ENV)$)/i;

/** `env`: with the flags of the platform, as their variables. `names`: of the variables that set something. */
export function toParentInput(
  document: unknown,
  env: NodeJS.ProcessEnv,
  names: ReadonlySet<string>,
): ParentInput {
  const choose = (isChosen: (name: string) => boolean): Record<string, string> =>
    Object.fromEntries(
      Object.entries(env).flatMap(([name, value]) =>
        value !== undefined && isChosen(name) ? [[name, value]] : [],
      ),
    );
  return {
    document,
    variables: choose((name) => names.has(name)),
    environment: choose((name) => OF_PROGRAMS.test(name)),
  };
}

/** Of a program that uses S3, and installs no packages: what those of package managers hold is no concern of it. */
export function withAwsVariables({ environment, ...input }: ParentInput): ParentInput {
  const own = Object.entries(environment).filter(([name]) => OF_AWS.test(name));
  return { ...input, environment: Object.fromEntries(own) };
}

const OF_AWS = /^AWS_/i;
const MAX_CHARS = 4 * 1024 * 1024;

export function writeParentInput(pipe: Writable, input: ParentInput): void {
  pipe.write(`${JSON.stringify(input)}\n`);
}

export type ParentLink = {
  readonly input: ParentInput;
  /** Resolves when the platform is gone. */
  readonly ended: Promise<void>;
};

/** Rejects when the platform is gone before it has said what is to run. */
export async function readParentInput(descriptor: number): Promise<ParentLink> {
  // No stream of files: its reading thread would wait for the platform, and the end of this process for that thread.
  const pipe = new Socket({ fd: descriptor, readable: true, writable: false }).setEncoding('utf8');
  const line = Promise.withResolvers<string>();
  const ended = Promise.withResolvers<void>();
  let waiting = '';
  pipe.on('data', (text) => {
    if (waiting.includes('\n') || waiting.length > MAX_CHARS) return;
    waiting += String(text);
    if (waiting.includes('\n')) line.resolve(waiting);
  });
  const onGone = (): void => {
    line.reject(new Error('the platform that started this program is gone'));
    ended.resolve();
  };
  pipe.on('end', onGone).on('error', onGone).on('close', onGone);
  const input = schema.parse(JSON.parse(await line.promise));
  waiting = '\n';
  return { input, ended: ended.promise };
}
