// `./src/agent.ts:graph`: an export of a file of the deployment, as the configuration names it.

export type SourceExport = {
  /** As in the configuration: relative to its directory, or absolute. */
  readonly file: string;
  readonly name: string;
  readonly text: string;
};

const PYTHON = /\.(?:py|pyx|pyd|pyi)$/;
const SOURCE = /\.(?:[cm]?[jt]s|[jt]sx)$/;

/** Returns what is wrong as a sentence. */
export function parseSource(text: string): SourceExport | string {
  const colon = text.lastIndexOf(':');
  const [file, name] = colon === -1 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)];
  if (PYTHON.test(file))
    return 'Python is not supported by this version: name a TypeScript or JavaScript file';
  if (text.includes('\0')) return 'must not contain U+0000';
  if (!SOURCE.test(file) || name === '') return 'must be file:export, for example ./src/agent.ts:graph';
  return { file, name, text };
}
