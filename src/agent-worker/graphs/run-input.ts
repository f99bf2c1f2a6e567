// What a graph begins with: the input of the run, a command, or nothing, when it goes on from a checkpoint.
import { isInterruptId } from '../checkpoints/resume-mark.ts';
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
  const fields: CommandFields | undefined = command === undefined ? undefined : JSON.parse(command);
  if (start.kind === 'resume') {
    const resume = resumeBy(start.interrupts, fields?.resume);
    return Object.keys(resume).length === 0 ? null : createCommand({ resume }, library);
  }
  if (fields === undefined) return input === undefined ? null : JSON.parse(input);
  const { interrupts = [] } = start.kind === 'beginning' ? start : {};
  const by = interrupts.length === 0 ? {} : { resume: resumeBy(interrupts, fields.resume) };
  return createCommand({ ...fields, ...by }, library);
}

/** The value for each of these interrupts; of one by interrupts, the part that is for them. */
function resumeBy(interrupts: readonly string[], resume: unknown): Readonly<Record<string, unknown>> {
  const parts = typeof resume === 'object' && resume !== null ? Object.entries(resume) : [];
  if (parts.length === 0 || !parts.every(([id]) => isInterruptId(id)))
    return Object.fromEntries(interrupts.map((id) => [id, resume]));
  return Object.fromEntries(parts.filter(([id]) => interrupts.includes(id)));
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
