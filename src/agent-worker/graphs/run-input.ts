// What a graph begins with: the input of the run, a command, or nothing, when it goes on from a checkpoint.
import { Refusal } from '../method.ts';
import type { RunToStart } from '../protocol/calls.ts';
import type { Library } from './library.ts';
import type { StartPoint } from './run-start-point.ts';

type Goto = string | { readonly node: string; readonly input?: unknown };
type CommandFields = {
  readonly resume?: unknown;
  readonly update?: unknown;
  readonly goto?: Goto | readonly Goto[] | null;
};

export function createRunInput({ input, command }: RunToStart, start: StartPoint, library: Library): unknown {
  if (start.kind === 'checkpoint') return null;
  if (start.kind === 'resume') {
    const { resume }: CommandFields = JSON.parse(command ?? '{}');
    return createCommand({ resume: Object.fromEntries(start.interrupts.map((id) => [id, resume])) }, library);
  }
  if (command !== undefined) return createCommand(JSON.parse(command), library);
  return input === undefined ? null : JSON.parse(input);
}

function createCommand({ resume, update, goto }: CommandFields, { Command, Send }: Library): object {
  const targets = goto === undefined || goto === null ? undefined : [goto].flat();
  const sends = targets?.map((target) => {
    if (typeof target === 'string') return target;
    if (typeof target?.node === 'string') return new Send(target.node, target.input);
    throw new Refusal(
      'invalid',
      '`command.goto` has an entry that is neither the name of a node nor `{node, input}`.',
    );
  });
  return new Command({ goto: sends, update, resume });
}
