// `Bearer {API_TOKEN}`: literal text with the names of workspace secrets in braces.
// It is read once, when written; a secret's own value is never read as a template, so it may hold braces.

export type Template = { readonly parts: readonly (string | { readonly secret: string })[] };
export type TemplateFault = typeof NO_PLACEHOLDER | typeof STRAY_BRACE;

/** Splits a template into literals and secret names; a string is the fault, as a sentence. */
export function parseSecretTemplate(text: string): Template | TemplateFault {
  // A capture in split() is kept: literals at the even places, names at the odd ones.
  const pieces = text.split(/\{([A-Za-z_][A-Za-z0-9_]*)\}/);
  const isLiteral = (_: string, i: number): boolean => i % 2 === 0;
  if (pieces.filter(isLiteral).some((literal) => /[{}]/.test(literal))) return STRAY_BRACE;
  if (pieces.length === 1) return NO_PLACEHOLDER;
  const parts = pieces.map((piece, i) => (isLiteral(piece, i) ? piece : { secret: piece }));
  return { parts: parts.filter((part) => part !== '') };
}

const NO_PLACEHOLDER =
  'A workspace_secret value should name a secret in braces, as in Bearer {API_TOKEN}; for text without a secret use plaintext';
const STRAY_BRACE =
  'A brace should enclose the name of a secret: {NAME}, of letters, digits and underscores, not beginning with a digit';
