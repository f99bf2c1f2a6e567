// Where the program of the agent is, and how it is started in a box: the box sees it and the Node that runs it, read-only, and
// nothing else of the product.
import { basename, join } from 'node:path';

export type AgentProgram = {
  /** A file or folder of the host, which the box must see read-only. */
  readonly source: string;
  /** The program within a folder; undefined where `source` is the program. */
  readonly entry: string | undefined;
  /** For Node, before the program: the agent needs little memory, and every box has one. */
  readonly nodeArguments: readonly string[];
};

const NODE_ARGUMENTS: readonly string[] = [
  '--max-old-space-size=48',
  '--max-semi-space-size=2',
  // A folder of TypeScript has no package.json beside it in a box.
  '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON',
];

/** In the bundle the program is a file beside this one; in a checkout, a folder that imports nothing outside of it. */
export function findAgentProgram(): AgentProgram {
  const isBundle = basename(import.meta.filename).endsWith('.js');
  if (isBundle)
    return {
      source: join(import.meta.dirname, 'box-agent.js'),
      entry: undefined,
      nodeArguments: NODE_ARGUMENTS,
    };
  return {
    source: join(import.meta.dirname, '..', '..', 'box-agent'),
    entry: 'main.ts',
    nodeArguments: NODE_ARGUMENTS,
  };
}
