// A Dockerfile as data: its instructions with their stage. Knows what ours needs, and no more of the format.

export type Instruction = { readonly name: string; readonly value: string; readonly stage: number };

/** Comments are left out, continued lines joined. The instructions before the first FROM have the stage -1. */
export function parseDockerfile(file: string): readonly Instruction[] {
  const text = file.replaceAll(/^#.*\n/gm, '').replaceAll(/\\\n\s*/g, '');
  let stage = -1;
  return [...text.matchAll(/^([A-Z]+) (.*)$/gm)].map(([, name = '', value = '']) => {
    if (name === 'FROM') stage += 1;
    return { name, value, stage };
  });
}

/** Of ENV: `NAME=value` pairs without quotes. */
export function parsePairs(value: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    value.split(' ').map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** Of ENTRYPOINT, CMD and HEALTHCHECK in the form of JSON. */
export function parseWords(value: string): readonly string[] {
  const words: unknown = JSON.parse(value.replace(/^.*?CMD (?=\[)/, ''));
  if (!Array.isArray(words) || words.some((word) => typeof word !== 'string'))
    throw new Error(`not a list of words: ${value}`);
  return words;
}
